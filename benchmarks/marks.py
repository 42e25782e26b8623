"""The buckets of `elastic goodput` beside what the workers themselves marked.

    python benchmarks/marks.py [--only NAME,…]

The jobs are some of `what_if.py`, and one whose store loses its memory. Each worker writes down when its process was born,
when each step was done, when each save began and ended, and when it was told to stop; the benchmark, when it kills one. From
these marks come the buckets once more. `between` is the time from the end of a run to the birth of the next one: an account
has it as stopping and waiting. It is left out where an agent comes later. So is the last run of an agent that is killed: an
agent tells what its workers did when they end, and that run is `running` as a whole. `a run` is the difference by the number
of runs. The bar is 50 ms of a run in each bucket, for a quiet machine: the exit code is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import define, field
from measuring import facts, load, stage, stop_on_signals
from what_if import JOBS, Job, row, run, table

from elastic.core.goodput import Kind
from elastic.core.replay.chronicle import Chronicle

NAMES = (
    "a worker is killed",
    "two workers are killed",
    "a node is lost and comes back",
    "a node is drained and comes back",
    "a late node",
    "a hang",
)
STORE_LOST = Job("the store is lost, then a worker", 2, "2", [(3.0, "store", 0), (6.0, "worker", 1)])
BAR_MS = 50.0
BUCKETS = ("starting", "training", "recomputed", "checkpoint", "hanging", "between")
BETWEEN = ("stopping", "checking", "waiting")


@define
class Run:
    """The marks of one start of a worker, on the clock of its host."""

    born_at: float
    follows: bool
    """The same agent had started a worker before."""
    steps: list[tuple[float, int]] = field(factory=list)
    saves: list[tuple[float, float]] = field(factory=list)
    end_at: float | None = None
    hangs: bool = False

    @property
    def last_at(self) -> float:
        return self.steps[-1][0] if self.end_at is None else self.end_at


def runs(path: Path) -> list[Run]:
    """Return the runs of a node's workers that made a step."""
    found, follows = list[Run](), False
    for line in path.read_text().splitlines():
        kind, *rest = line.split()
        match kind:
            case "agent":
                follows = False
            case "born":
                found.append(Run(float(rest[0]), follows))
                follows = True
            case "step":
                found[-1].steps.append((float(rest[0]), int(rest[1])))
            case "busy":
                found[-1].saves.append((float(rest[0]), math.inf))
            case "saved":
                found[-1].saves[-1] = found[-1].saves[-1][0], float(rest[0])
            case "hangs":
                found[-1].hangs = True
            case "killed":
                found.pop()
            case "end" if found[-1].end_at is None:
                found[-1].end_at = float(rest[0])
            case _:
                pass
    return [each for each in found if each.steps]


def marked(node: Sequence[Run]) -> Iterator[tuple[str, float]]:
    """Yield what the marks of a node make of its time: each time a bucket, and seconds."""
    reached = -1
    for each in node:
        reached = reached if each.follows else -1
        first_at, last_at = each.steps[0][0], each.steps[-1][0] if each.hangs else each.last_at
        passed_at = next((at for at, step in each.steps if step > reached), last_at)
        yield "starting", first_at - each.born_at
        yield "hanging", each.last_at - last_at
        for bucket, begin, end in (("recomputed", first_at, passed_at), ("training", passed_at, last_at)):
            saving = sum(max(min(until, end) - max(since, begin), 0.0) for since, until in each.saves)
            yield bucket, end - begin - saving
            yield "checkpoint", saving
        reached = max(reached, *(step for _, step in each.steps))
    for one, other in pairwise(node):
        yield "between", other.born_at - one.last_at


def accounted(chronicle: Chronicle) -> dict[str, float]:
    """Return the seconds of the same buckets as the traces have them."""
    found = Counter[str]()
    for (bucket, kind), micros in chronicle.recorded.items():
        if bucket not in BETWEEN:
            found[bucket] += micros
        elif kind is not Kind.FIRST:
            found["between"] += micros
    return {bucket: found[bucket] / 1e6 for bucket in BUCKETS}


def compare(job: Job) -> bool:
    """Run the job and print its buckets. Return True if all are within the bar."""
    with TemporaryDirectory() as folder:
        of_account = accounted(run(job, Path(folder)))
        of_nodes = [runs(path) for path in sorted(Path(folder).glob("marks-*"))]
    number, by_marks = sum(map(len, of_nodes)), dict.fromkeys(BUCKETS, 0.0)
    for bucket, seconds in (each for node in of_nodes for each in marked(node)):
        by_marks[bucket] += seconds
    if by_marks["hanging"]:
        for each in (of_account, by_marks):
            each["hanging"] += each.pop("between")
    elif any(what == "start" for _, what, _ in job.faults):
        del of_account["between"]
    holds = True
    for bucket in (each for each in BUCKETS if each in of_account and (of_account[each] or by_marks.get(each))):
        off_ms = 1_000 * (of_account[bucket] - by_marks[bucket]) / number
        holds &= abs(off_ms) <= BAR_MS
        row(
            f"{job.name} ({number} runs)",
            bucket,
            f"{of_account[bucket]:.3f}",
            f"{by_marks[bucket]:.3f}",
            f"{off_ms:+.0f}",
            "yes" if abs(off_ms) <= BAR_MS else "no",
            load(),
        )
    return holds


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="names of jobs, or parts of them")
    wanted = [name for name in parser.parse_args().only.split(",") if name]
    stop_on_signals()
    with stage():
        print(facts(), "", sep="\n")
        table("job", "bucket", "account, s", "marks, s", "a run, ms", "within 50 ms", "load")
        those = (*(job for job in JOBS if job.name in NAMES), STORE_LOST)
        held = [compare(job) for job in those if not wanted or any(each in job.name for each in wanted)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
