"""`elastic launch` beside torchrun, and beside the least that a launcher could do, in one run.

    python benchmarks/launch.py [--runs N] [--only NAME] [--beside ELASTIC]

The launchers take turns, so that whatever else the machine does meets all of them; each has a warm-up run that does not
count. Times are read from outside, by one clock (CLOCK_MONOTONIC). The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from measuring import (
    BIN,
    HERE,
    Bar,
    Measure,
    Samples,
    all_hold,
    facts,
    load,
    ratio_of,
    shares,
    stage,
    stop_on_signals,
    table,
)

OPTIONS = ("--standalone", "--nproc-per-node=2", "--max-restarts=1")
BESIDE = "the other elastic"
LAUNCHERS: dict[str, tuple[str, ...]] = {
    "elastic": (str(BIN / "elastic"), "launch", *OPTIONS),
    "torchrun": (str(BIN / "torchrun"), *OPTIONS),
    "bare loop": (sys.executable, str(HERE / "programs" / "bare_loop.py")),
}
WORKERS = 2
RUN_TIMEOUT_S = 120
"""A launcher that takes longer than this for one run hangs."""
SETTLE_S = 3.0
RATIOS = (("torchrun", "elastic"), ("elastic", "bare loop"))


# --- one launch, watched from outside


class Launch:
    """A launcher and its workers, started now."""

    def __init__(self, launcher: str, program: str) -> None:
        command = [*LAUNCHERS[launcher], str(HERE / "programs" / program)]
        self.began_at = time.monotonic()
        self._command = " ".join(command)
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.pid = self._process.pid

    def line(self, first_word: str) -> str:
        """What comes after `first_word` on the next line that the workers print."""
        assert self._process.stdout
        word, _, rest = self._process.stdout.readline().decode().rstrip("\n").partition(" ")
        if word != first_word:
            raise RuntimeError(f"{self._command}: {first_word!r} expected of a worker, not {word!r}")
        return rest

    def ends(self) -> None:
        """Wait for the end of a launch that succeeds."""
        if code := self._process.wait():
            raise RuntimeError(f"{self._command}: exit code {code}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()


@contextmanager
def launched(launcher: str, program: str) -> Iterator[Launch]:
    launch = Launch(launcher, program)
    try:
        yield launch
    finally:
        launch.close()


# --- what is timed: one launch -> seconds


def first_line(launcher: str) -> float:
    with launched(launcher, "prints.py") as launch:
        launch.line("worker")
        came_at = time.monotonic()
        launch.ends()
    return came_at - launch.began_at


def end(launcher: str) -> float:
    """From the worker's own word: this process, woken by a death, would often wait until the launcher has used its turn."""
    with launched(launcher, "ends.py") as launch:
        workers_ended_at = max(float(launch.line("end")) for _ in range(WORKERS))
        launch.ends()
        launcher_ended_at = time.monotonic()
    return launcher_ended_at - workers_ended_at


def restart(launcher: str) -> float:
    with launched(launcher, "dies_once.py") as launch:
        for _ in range(WORKERS):
            launch.line("round")
        died_at = float(launch.line("death"))
        for _ in range(WORKERS):
            launch.line("round")
        back_at = time.monotonic()
        launch.ends()
    return back_at - died_at


def timed(once: Callable[[str], float], runs: int) -> Samples:
    """The launchers in turn, after one run of each that does not count."""
    samples: dict[str, list[float]] = {launcher: [] for launcher in LAUNCHERS}
    for run in range(-1, runs):
        for launcher, counted in samples.items():
            signal.alarm(RUN_TIMEOUT_S)
            seconds = once(launcher)
            signal.alarm(0)
            if run >= 0:
                counted.append(seconds * 1000)
    return samples


# --- the measures


def measure_first_line(runs: int) -> list[Measure]:
    return [Measure("start → first worker line", "ms", timed(first_line, runs), (ratio_of("torchrun", 5),))]


def measure_end(runs: int) -> list[Measure]:
    return [Measure("last worker's end → launcher's", "ms", timed(end, runs), (ratio_of("torchrun", 10),))]


def measure_restart(runs: int) -> list[Measure]:
    sooner = Bar("< torchrun", lambda times: times["elastic"] < times["torchrun"])
    near = Bar("≤ 2.5 × bare loop", lambda times: times["elastic"] <= 2.5 * times["bare loop"])
    return [Measure("worker's death → all print again", "ms", timed(restart, runs), (sooner, near))]


def measure_idle(runs: int) -> list[Measure]:
    """Both agents over the same windows, beside each other: they use next to nothing that the other could miss."""
    with launched("elastic", "sleeps.py") as ours, launched("torchrun", "sleeps.py") as theirs:
        agents = {"elastic": ours.pid, "torchrun": theirs.pid}
        workers = {int(launch.line("worker")) for launch in (ours, theirs) for _ in range(WORKERS)}
        helpers = {"elastic": next(iter(children(ours.pid) - workers))}
        time.sleep(SETTLE_S)
        windows = [shares(*agents.values(), *helpers.values()) for _ in range(runs)]
        used = {pid: [window[pid] for window in windows] for pid in windows[0]}
        sizes = {pid: [rss_mib(pid)] for pid in used}
    bar = Bar("< 0.5 %", lambda shares: shares["elastic"] < 0.5)
    return [
        Measure("idle agent, of one core", "%", {name: used[pid] for name, pid in agents.items()}, (bar,)),
        Measure("its reaper, of one core", "%", {name: used[pid] for name, pid in helpers.items()}),
        Measure("idle agent, memory", "MiB", {name: sizes[pid] for name, pid in agents.items()}),
        Measure("its reaper, memory", "MiB", {name: sizes[pid] for name, pid in helpers.items()}),
    ]


def rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def children(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


MEASURES: Mapping[str, Callable[[int], list[Measure]]] = {
    "first-line": measure_first_line,
    "end": measure_end,
    "restart": measure_restart,
    "idle": measure_idle,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="counted runs of each launcher [15]")
    parser.add_argument("--only", choices=MEASURES, metavar="NAME", help=f"one of {', '.join(MEASURES)}")
    parser.add_argument("--beside", metavar="ELASTIC", help="the `elastic` of another commit, in turn with this one")
    given = parser.parse_args()
    if given.beside:
        LAUNCHERS[BESIDE] = (given.beside, "launch", *OPTIONS)
    with stage():
        return run(given.runs, given.only)


def run(runs: int, only: str | None) -> int:
    print(facts())
    print(f"{runs} counted runs each, in turn, after a warm-up\n", flush=True)
    measures = [done for name, measure in MEASURES.items() if only in (None, name) for done in measure(runs)]
    ratios = RATIOS if BESIDE not in LAUNCHERS else (*RATIOS, ("elastic", BESIDE))
    print("\n".join(table(measures, tuple(LAUNCHERS), ratios)))
    print(f"\nload afterwards {load()}")
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
