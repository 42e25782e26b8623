"""Restart inside the process beside nvidia-resiliency-ext's wrapper, in one run: from a fault until all are back.

    pip install --no-deps --target DIR nvidia-resiliency-ext==0.4.1 pyyaml defusedxml
    python benchmarks/inprocess.py --peer DIR [--runs N] [--worlds 2,4] [--only NAME]

The wrappers take turns. The program is the same (programs/inprocess_faults.py); the peer's ranks are plain processes, as it
has no launcher of its own, ours run under `elastic launch --restart-scope=rank`. `peer fast` is the peer with its intervals
at 10 ms and no last-call wait. A hang is looked for with a soft limit of 1 s; what is shown is the time beyond it, which is
below 0 when the last stamp of progress was some time before the hang. A store's wait that times out resolves its peer's name
for a warning, which would cost the peer seconds where no resolver answers: here it does not. The exit code is 1 if a bar is
missed.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Final

from attrs import frozen
from measuring import BIN, HERE, Bar, Measure, all_hold, facts, load, ratio_of, stage, stop_on_signals, table

PROGRAM = str(HERE / "programs" / "inprocess_faults.py")
COSTS = str(HERE / "programs" / "inprocess_costs.py")
SOFT_S: Final = 1.0
JOB_TIMEOUT_S = 240
EXCEPTIONS = 10
WRAPPERS = ("elastic", "peer", "peer fast")
RATIOS = (("peer", "elastic"), ("peer fast", "elastic"))
NO_RESOLVER = {"RES_OPTIONS": "attempts:0"}
HANGS = {"sleep": "hang in time.sleep", "c": "hang in C", "gil": "hang in C that holds the GIL"}


@frozen
class Said:
    """One line of one rank: `word`, its iteration (-1: none), and when."""

    rank: int
    word: str
    iteration: int
    at: float


def job(wrapper: str, peer: str, world: int, fault: str, count: int) -> list[Said]:
    """What the ranks of one job say until all have ended."""
    name, _, settings = wrapper.partition(" ")
    return run(name, peer, world, [PROGRAM, name, settings or "default", fault, str(count)])


def run(name: str, peer: str, world: int, arguments: Sequence[str]) -> list[Said]:
    with ExitStack() as stack, TemporaryFile() as output:  # a pipe is held open by whatever the peer leaves behind
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    env={**os.environ, **NO_RESOLVER, **more},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                )
            )
            for command, more in commands(name, peer, world, arguments)
        ]
        for process in processes:
            stack.callback(process.kill)
        for process in processes:
            process.wait(timeout=JOB_TIMEOUT_S)
        output.seek(0)
        return [said(line) for line in output.read().decode().splitlines()]


def commands(
    name: str, peer: str, world: int, arguments: Sequence[str]
) -> Iterator[tuple[Sequence[str], Mapping[str, str]]]:
    if name == "elastic":
        options = ("--standalone", "--restart-scope=rank", f"--nproc-per-node={world}", "--status=off")
        yield [str(BIN / "elastic"), "launch", *options, *arguments], {}
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world), "PYTHONPATH": peer}
    for rank in range(world):
        yield [sys.executable, *arguments], {**meeting, "RANK": str(rank)}


def said(line: str) -> Said:
    rank, word, *iteration, at = line.split()
    return Said(int(rank), word, int(iteration[0]) if iteration else -1, float(at))


def back(heard: Sequence[Said], iteration: int) -> float:
    """Seconds from the fault of this iteration until the last rank that comes back has entered the next."""
    (fault,) = [each.at for each in heard if (each.word, each.iteration) == ("fault", iteration)]
    return max(each.at for each in heard if (each.word, each.iteration) == ("in", iteration + 1)) - fault


def returned(heard: Sequence[Said]) -> float:
    ended, out = ([each.at for each in heard if each.word == word] for word in ("end", "out"))
    return max(out) - max(ended)


def measure_exception(peer: str, world: int, runs: int) -> list[Measure]:
    jobs = {wrapper: job(wrapper, peer, world, "exception", EXCEPTIONS) for wrapper in WRAPPERS}
    samples = {name: [1000 * back(heard, at) for at in range(EXCEPTIONS)] for name, heard in jobs.items()}
    ends = {name: [1000 * returned(heard)] for name, heard in jobs.items()}
    for _ in range(runs):
        for wrapper, returns in ends.items():
            returns.append(1000 * returned(job(wrapper, peer, world, "none", 0)))
    soon = Bar("≤ 20 ms", lambda times: times["elastic"] <= 20)
    return [
        Measure(
            f"exception → all back, {world} ranks", "ms", samples, (ratio_of("peer", 30), ratio_of("peer fast", 5))
        ),
        Measure(f"last return → the last call returns, {world} ranks", "ms", ends, (soon,)),
    ]


def measure_kill(peer: str, world: int, runs: int) -> list[Measure]:
    taken = {wrapper: [] for wrapper in WRAPPERS}  # type: dict[str, list[float]]
    for _ in range(runs):
        for wrapper, samples in taken.items():
            samples.append(1000 * back(job(wrapper, peer, world, "kill", 1), 0))
    first = {"elastic": [1000 * back(job("elastic", peer, world, "kill@0", 1), 0) for _ in range(runs)]}
    bars = ratio_of("peer", 30), ratio_of("peer fast", 5)
    return [
        Measure(f"SIGKILL → all others back, {world} ranks", "ms", taken, bars),
        Measure(f"SIGKILL of rank 0 → all others back (the peer's never are), {world} ranks", "ms", first),
    ]


def measure_hang(peer: str, world: int, runs: int) -> list[Measure]:
    """Ours alone: the peer does not call a rank back from these, it kills it at the hard limit."""
    bar = Bar("≤ 50 ms", lambda times: times["elastic"] <= 50)
    measures = []
    for fault, title in HANGS.items():
        samples = []
        for _ in range(runs):
            heard = job("elastic", peer, world, fault, 1)
            samples.append(1000 * (back(heard, 0) - SOFT_S))
            if len({each.rank for each in heard if (each.word, each.iteration) == ("in", 1)}) < world:
                raise RuntimeError(f"{title}: a rank was lost")
        measures.append(Measure(f"{title}, beyond the limit, {world} ranks", "ms", {"elastic": samples}, (bar,)))
    return measures


def measure_costs(peer: str, runs: int) -> list[Measure]:
    """While nothing goes wrong, one rank."""
    taken: dict[str, dict[str, list[float]]] = {"ping": {}, "wrapped": {}, "alone": {}}
    for _ in range(runs):
        for name in WRAPPERS[:2]:
            for each in run(name, peer, 1, [COSTS, name]):
                taken[each.word].setdefault(name, []).append(each.iteration)
    titles = {"ping": "one ping", "wrapped": "a step of some Python, wrapped", "alone": "the same step, not wrapped"}
    return [Measure(title, "ns", taken[word]) for word, title in titles.items()]


MEASURES = {"exception": measure_exception, "kill": measure_kill, "hang": measure_hang}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", required=True, metavar="DIR", help="where the peer was installed to")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="jobs per figure, but for exceptions [3]")
    parser.add_argument("--worlds", default="2,4", metavar="N,N", help="ranks [2,4]")
    parser.add_argument(
        "--only", choices=[*MEASURES, "costs"], metavar="NAME", help=f"one of {', '.join(MEASURES)}, costs"
    )
    given = parser.parse_args()
    worlds = [int(world) for world in given.worlds.split(",")]
    with stage():
        print(facts(), flush=True)
        measures = [
            measure
            for world in worlds
            for name, take in MEASURES.items()
            if given.only in (None, name)
            for measure in take(given.peer, world, given.runs)
        ]
        if given.only in (None, "costs"):
            measures += measure_costs(given.peer, given.runs)
        print("\n".join(table(measures, WRAPPERS, RATIOS)))
        print(f"\nload afterwards {load()}")
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
