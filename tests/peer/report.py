"""Report what torch does in the world in which our agents are tested: `python tests/peer/report.py`.

Each run is a random story of core/sim/swarm, which torch's agents run and ours too. The table counts the runs in which a
property was broken; the shortest stories that break each property stand below it.

  report.py [--runs N]                    make N runs for each family of faults
  report.py show NAME                     run one of the shortest stories with both, and print all that happens
  report.py show FAMILY SEED              the same with one of the runs
  report.py shrink FAMILY SEED FINDING    the same without the operations that the finding does not need
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping

from attrs import field, frozen
from torchstories import PINS, WORDS
from torchtold import shrunk, told
from torchworld import Peers

from elastic.core.group import Outcome
from elastic.core.sim import narration, run
from elastic.core.sim.kinds import Kind
from elastic.core.sim.process import Process
from elastic.core.sim.story import Story, name
from elastic.core.sim.swarm import Shape
from elastic.core.world import Verdict

NODES = 4


@frozen
class Family:
    """A family of runs: the faults that may be drawn, and the settings of torch's hosts."""

    faults: frozenset[Kind]
    peers: Peers = field(factory=Peers)


_FAILURES = frozenset((Kind.START, Kind.FAIL))
_DEATHS = _FAILURES | {Kind.CRASH, Kind.DRAIN, Kind.SUCCEED}
_DELAYS = frozenset((Kind.PAUSE, Kind.SLOW, Kind.CUT, Kind.CUT_IN, Kind.CUT_OUT, Kind.OUTAGE))
FAMILIES: Mapping[str, Family] = {
    "failures": Family(_FAILURES),
    "deaths": Family(_DEATHS),
    "noticed": Family(_DEATHS, Peers(spreads=1.0)),
    "delays": Family(_FAILURES | _DELAYS),
    "clock": Family(_FAILURES, Peers(clocks={"b": -7.0})),
}
"""The families of runs.

failures: workers fail, and nodes start late
deaths: nodes also die, drain, and succeed early
noticed: as deaths, but workers fail a second after a peer
delays: as failures, with pauses, slow and cut networks, and outages
clock: as failures, with one wall clock that is 7 s slow (the TTL is 3 or 5 s)
"""


def drawn(family: Family, seed: int) -> run.Run:
    """Return the run of our agents; it has the story for both."""
    return run.wander(seed, Shape(nodes=NODES, faults=family.faults))


def counted(family: Family, runs: int) -> tuple[Counter[str], Counter[str]]:
    """Return by property the number of runs in which torch broke it, and in which our agents did."""
    torchs, ours = Counter[str](), Counter[str]()
    for seed in range(1, runs + 1):
        our = drawn(family, seed)
        ours.update({our.violation.number} if our.violation else ())
        if len({how.ending for how in map(_outcome, our.world.by_node.values()) if isinstance(how, Verdict)}) > 1:
            ours["verdict"] += 1
        found = {finding.number for finding in told(our.story, family.peers).findings}
        torchs.update(found | ({"any"} if found else set()))
    return torchs, ours


def _outcome(process: Process) -> Outcome | None:
    return process.agent.outcome


def table(runs: int) -> None:
    columns = {each: counted(family, runs) for each, family in FAMILIES.items()}
    print(f"runs in which torch broke it, of {runs} in each family\n")
    print(f"| {'property':66} | {' | '.join(f'{each:8}' for each in columns)} | shortest: report.py show … |")
    print(f"| --- | {' | '.join('---:' for _ in columns)} | --- |")
    for number, words in {**WORDS, "any": "any of these"}.items():
        counts = " | ".join(f"{torchs[number]:8}" for torchs, _ in columns.values())
        shows = ", ".join(f"{each}" for each, pin in PINS.items() if number in pin.breaks)
        print(f"| {words:66} | {counts} | {shows} |")
    ours = " | ".join(f"{sum(found.values()):8}" for _, found in columns.values())
    print(f"| {'ours, the same stories: a property of its own, or the verdict':66} | {ours} | |")
    for each, pin in PINS.items():
        print(f"\n{each}: {pin.short}\n  torch: {pin.torch}\n  ours: {pin.ours}")


def _says(at: float, who: str, what: str) -> None:
    print(f"{at:9.3f} {who:4} {what}")


def show(story: Story, peers: Peers) -> None:
    print(story, "", "--- torch", sep="\n")
    torchs = told(story, peers, _says)
    print("\n--- ours")
    ours = run.tell(story, _says)
    print("\ntorch:")
    for finding in torchs.findings:
        print(f"  {WORDS[finding.number]}: {finding.text} (at {finding.at:.1f} s)")
    print("ours:", ours.violation or "nothing is broken")
    for process in ours.world.by_node.values():
        print(f"  {name(process.node)} {narration.outcome(process.agent.outcome) if process.agent.outcome else 'runs'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="in each family (default: %(default)s)")
    parser.add_argument("show", nargs="*", help=f"show NAME ({', '.join(PINS)}) or FAMILY ({', '.join(FAMILIES)}) SEED")
    given = parser.parse_args()
    match given.show:
        case []:
            table(given.runs)
        case ["show", which] if which in PINS:
            show(PINS[which].story, PINS[which].peers)
        case ["show", which, seed] if which in FAMILIES:
            show(drawn(FAMILIES[which], int(seed)).story, FAMILIES[which].peers)
        case ["shrink", which, seed, number] if which in FAMILIES:
            peers = FAMILIES[which].peers
            show(shrunk(drawn(FAMILIES[which], int(seed)).story, number, peers), peers)
        case other:
            parser.error(f"{' '.join(other)}: nothing that can be shown")


if __name__ == "__main__":
    main()
