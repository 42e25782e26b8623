"""Compute what a spare node would have bought a job, from its traces.

    elastic launch --trace=traces/ --nnodes=2 ... train.py      # on each node
    python examples/simulate/what_if.py traces/*.ndjson

First the job is run again as it was. What the simulator does not find again, it can suppose nothing of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from elastic.adapters.report.trace_file import lines
from elastic.core import replay, sim
from elastic.core.trace.lines import traces
from elastic.core.trace.steps import Trace

USEFUL = ("training", "running")
TRUSTED = 0.1


def read(paths: Sequence[str]) -> Iterator[Trace]:
    for path in paths:
        yield from traces(lines(path))


def useful(forecast: sim.Forecast) -> float:
    """Return the share of the nodes' time in which they trained, over all runs."""
    total = sum(sum(run.spent.values()) for run in forecast.played)
    spent = sum(micros for run in forecast.played for (bucket, _), micros in run.spent.items() if bucket in USEFUL)
    return spent / total


def main(paths: Sequence[str]) -> int:
    chronicle = replay.told(read(paths))
    as_it_was = sim.what_if(chronicle)
    print(f"as it was: {useful(as_it_was):.1%} training, and the runs are off by {as_it_was.off:.1%}")
    if as_it_was.off > TRUSTED:
        return 1
    for follows in sim.Follows:
        with_spare = sim.what_if(chronicle, setting=sim.Supposition(spares=1), follows=follows)
        print(f"with a spare, failures by {follows.value}: {useful(with_spare):.1%} training")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
