"""Agents as threads of one process rendezvous on a real store, beside torch's own handlers and beside bare puts and watches.

benchmarks/README.md says what is measured and how it is made fair.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from pathlib import Path
from queue import Empty
from statistics import median
from uuid import uuid4

from agent_threads import TIMEOUT_S, BareFleet, ElasticFleet, Fleet, Gathered, TorchFleet
from measuring import Bar, Measure, all_hold, cpu_s, facts, load, stage, stop_on_signals, table
from stores import Store, etcd, tcpstore

TORCH = "torch c10d"
ETCD_MEMBERS = 3
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
BAR_AT = 64
TORCH_MAX = 64
"""Of more agents, torch's rounds take minutes."""

Make = Callable[[], Fleet]
Kinds = Mapping[str, Callable[[], AbstractContextManager[Store]]]
KINDS: Kinds = {"tcpstore": tcpstore, "etcd": lambda: etcd(ETCD_MEMBERS)}


def fleets(kind: str, store: Store, agents: int, torch_max: int) -> Mapping[str, Make]:
    """By the column that they stand in. torch meets on the TCPStore only."""
    run_id = uuid4().hex
    made: dict[str, Make] = {
        f"elastic, {kind}": lambda: ElasticFleet(lambda: store.client(run_id), agents),
        f"bare, {kind}": lambda: BareFleet(store.bare, agents),
    }
    if kind == "tcpstore" and agents <= torch_max:
        made[TORCH] = lambda: TorchFleet(store.address, run_id, agents)
    return made


def measured(make: Make, runs: int) -> list[Gathered]:
    """The first rendezvous of a fleet, and so many after a break; fewer if it gathers no longer. What was there before is
    kept from the collector, as `elastic launch` does with its imports: none pays for torch's modules or the fleet before."""
    gc.collect()
    gc.freeze()
    fleet, rounds = make(), list[Gathered]()
    try:
        rounds.append(fleet.gather())
        for _ in range(runs):
            time.sleep(0.33)  # out of step with everybody's heartbeats
            rounds.append(fleet.again())
    except Empty:
        pass
    finally:
        fleet.close()
    return rounds


def measure(agents: int, runs: int, kinds: Sequence[str], torch_max: int) -> list[Measure]:
    done: dict[str, list[Gathered]] = {}
    for kind in kinds:
        with KINDS[kind]() as store:
            for name, make in fleets(kind, store, agents, torch_max).items():
                done[name] = measured(make, runs)
    first = {name: [1000 * rounds[0].whole] for name, rounds in done.items() if rounds}
    known = {name: [1000 * each.known for each in rounds[1:]] for name, rounds in done.items() if rounds[1:]}
    whole = {name: [1000 * each.whole for each in rounds[1:]] for name, rounds in done.items() if rounds[1:]}
    bars = bars_of(kinds) if agents == BAR_AT and TORCH in whole else ()
    return [
        Measure(f"{agents} agents: first", "ms", first),
        Measure(f"{agents} agents: all know", "ms", known),
        Measure(f"{agents} agents: again", "ms", whole, bars),
    ]


def bars_of(kinds: Sequence[str]) -> tuple[Bar, ...]:
    def bar(kind: str) -> Bar:
        ours = f"elastic, {kind}"
        return Bar(f"{kind} ≤ 1/20 of {TORCH}", lambda times: times[ours] <= times[TORCH] / 20)

    return tuple(bar(kind) for kind in kinds)


# --- where the time goes


def profiled(kind: str, agents: int, rounds: int) -> list[str]:
    """What one rendezvous costs: all agents' CPU time, and that of one of them by module, with how often it did what. The
    others are not profiled, so that they are as quick as ever."""
    with KINDS[kind]() as store, _profiles(agents // 2) as profiles:
        fleet = fleets(kind, store, agents, 0)[f"elastic, {kind}"]()
        try:
            fleet.gather()
            before = time.process_time(), sum(map(cpu_s, store.pids))
            wholes = [fleet.again().whole for _ in range(rounds)]
            own, stores = time.process_time() - before[0], sum(map(cpu_s, store.pids)) - before[1]
        except Empty:
            return [f"{agents} agents, {kind}: for {TIMEOUT_S:g} s nothing was heard of any of them"]
        finally:
            fleet.close()
    spent: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    stats = pstats.Stats(*(each for each in profiles if each.getstats())).stats  # type: ignore[attr-defined]
    for (file, _, name), (_, count, mine, _, callers) in stats.items():
        calls[f"{module(file)}.{name}"] += count
        for (caller, _, _), of in callers.items() if file == "~" else ():
            spent[module(caller)] += of[2]
        spent[module(file)] += 0 if file == "~" else mine
    median_s, each = median(wholes), 1 / (rounds + 1)
    lines = [
        f"{agents} agents, {kind}: {median_s:.2f} s; CPU: agents {own / rounds:.2f} s, store {stores / rounds:.2f} s"
    ]
    lines += [f"one agent: {1000 * each * spent.total():.1f} ms of CPU in its own threads"]
    lines += [f"  {1000 * each * took:8.1f} ms  {name}" for name, took in spent.most_common(MODULES_SHOWN)]
    return lines + [f"  {each * calls[name]:8.1f} ×   {name}" for name in COUNTED if calls[name]]


MODULES_SHOWN = 14
COUNTED = (
    *("codec.decode", "codec.encode", "turn.turn", "tcpstore.set", "wire.get", "wire.compare_set", "wire.wait"),
    *("etcd.set", "etcd._read", "line.ask", "feed.next"),
)


def module(file: str) -> str:
    path = Path(file)
    return "protobuf" if "google" in path.parts else "grpc" if "grpc" in path.parts else path.stem


@contextmanager
def _profiles(which: int) -> Iterator[list[cProfile.Profile]]:
    """Of the threads of this agent, by their CPU time: of those of a name, the one that is started after so many others."""
    made: list[cProfile.Profile] = []
    started: Counter[str] = Counter()
    plain = threading.Thread.run

    def run(self: threading.Thread) -> None:
        started[self.name] += 1
        if not self.name.startswith("elastic-") or started[self.name] != which + 1:
            return plain(self)
        made.append(profile := cProfile.Profile(time.thread_time))
        return profile.runcall(plain, self)

    threading.Thread.run = run  # type: ignore[method-assign]
    try:
        yield made
    finally:
        threading.Thread.run = plain  # type: ignore[method-assign]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="breaks of each fleet [10]")
    parser.add_argument("--agents", default=",".join(map(str, SIZES)), metavar="N,N", help="numbers of agents")
    parser.add_argument("--stores", default=",".join(KINDS), metavar="KIND,KIND", help="[%(default)s]")
    parser.add_argument(
        "--torch-max", type=int, default=TORCH_MAX, metavar="N", help="most agents of torch's [%(default)s]"
    )
    parser.add_argument("--profile", action="store_true", help="where the time goes, instead")
    given = parser.parse_args()
    sizes, kinds = [int(size) for size in given.agents.split(",")], given.stores.split(",")
    names = [*(f"elastic, {kind}" for kind in kinds), TORCH, *(f"bare, {kind}" for kind in kinds)]
    ratios = [(TORCH, f"elastic, {kind}") for kind in kinds] + [(f"elastic, {kind}", f"bare, {kind}") for kind in kinds]
    with stage():
        print(f"{facts()}\n{given.runs} breaks of each fleet\n", flush=True)
        if given.profile:
            for kind, size in product(kinds, sizes):
                print("\n".join(profiled(kind, size, given.runs)), flush=True)
            return 0
        done: list[Measure] = []
        for size in sizes:
            done += measure(size, given.runs, kinds, given.torch_max)
            print("\n".join(table(done[-3:], names, ratios)), flush=True)
        print("\n".join(["", *table(done, names, ratios)]))
        print(f"\nload afterwards {load()}")
    return 0 if all_hold(done) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
