"""What the handler that writes a worker's stacks costs a training step, and what a look at the worker costs.

    python benchmarks/stacks.py [--blocks N]

Three processes train the same, one with the handler and two without. They take turns, block by block, forwards and
backwards, so that whatever else the machine does meets all. The second one without is the control: its ratio tells how far
two equal processes are apart on this machine now. Then the one with the handler is looked at while it trains.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from statistics import median, quantiles

from measuring import HERE, facts, stage, stop_on_signals

from elastic.adapters.launch_settings import STACKS_SIGNAL
from elastic.adapters.workers.start_up import StackHandler, StartUp
from elastic.adapters.workers.watch.stacks import see

HANDLER = StackHandler(STACKS_SIGNAL, 1023)
LOOKS = 100


class Training:
    """A process that trains when it is told to."""

    def __init__(self, has_handler: bool) -> None:
        environment = StartUp(HANDLER, 1022).environment(os.environ) if has_handler else None
        command = [sys.executable, "-u", str(HERE / "programs" / "trains.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout
        self.process.stdout.readline()

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def block(self) -> tuple[float, float]:
        """The wall time and the CPU time of a step."""
        assert self.process.stdout
        wall, cpu = map(float, self.process.stdout.readline().split())
        return wall, cpu


def steps(blocks: int) -> None:
    having = Training(True)
    trainings = Training(False), having, Training(False)
    times: dict[Training, list[tuple[float, float]]] = {each: [] for each in trainings}
    for turn in range(blocks + 1):
        for each in trainings if turn % 2 else trainings[::-1]:
            each.go()
            times[each].append(each.block())
    for kind, name in enumerate(("wall", "CPU")):
        theirs, ours, others = ([block[kind] for block in times[each][1:]] for each in trainings)
        print(
            f"| {name} time of a step, µs | {median(theirs) * 1e6:.1f} | {median(ours) * 1e6:.1f} "
            f"| {ratio(ours, theirs)} | {ratio(others, theirs)} |"
        )
    looks(having)


def ratio(some: list[float], others: list[float]) -> str:
    """Return the median of the ratios turn by turn, with their quartiles."""
    low, middle, high = quantiles([one / other for one, other in zip(some, others, strict=True)], n=4)
    return f"{middle:.4f} ({low:.4f}–{high:.4f})"


def looks(training: Training) -> None:
    took = []
    for _ in range(LOOKS):
        training.go()
        began = time.perf_counter()
        see({0: training.process.pid}, HANDLER)
        took.append(time.perf_counter() - began)
        training.block()
    print(f"\na look at one that trains: {median(took) * 1e3:.1f} ms ({min(took) * 1e3:.1f}–{max(took) * 1e3:.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=100, help="turns of each (100)")
    blocks = parser.parse_args().blocks
    stop_on_signals()
    print(facts(), "\n")
    print("| | without | with the handler | with / without, turn by turn (quartiles) | control / without |")
    print("| --- | --- | --- | --- | --- |")
    with stage():
        steps(blocks)


if __name__ == "__main__":
    main()
