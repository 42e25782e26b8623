"""What `elastic.progress(step)` costs a training loop, beside the same loop without it.

    python benchmarks/progress.py [--turns 300]

One worker under `elastic launch` trains a small network of torch, in turns of 20 steps with the call and without. A page of
memory is there as for any worker. The ratio is that of two turns that follow one another, in the median: other work on
the machine takes from both. `busy` also has a busy span and a save in each turn, as a loop that checkpoints has. The exit
code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from measuring import BIN, HERE, Bar, Measure, all_hold, facts, load, stage, stop_on_signals, table

PROGRAM = HERE / "programs" / "says_steps.py"
BAR = 1.02


def turns(count: int) -> dict[str, list[float]]:
    """Return the seconds of each turn, by its kind."""
    with TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        command = [
            str(BIN / "elastic"),
            "launch",
            "--nproc-per-node=1",
            "--status=off",
            str(PROGRAM),
            str(count),
            str(told),
        ]
        subprocess.run(command, check=True, env=os.environ)
        found: dict[str, list[float]] = json.loads(told.read_text())
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=300, metavar="N", help="[300]")
    given = parser.parse_args()
    print(facts(), flush=True)
    with stage():
        took = turns(given.turns)
    bare = took.pop("bare")
    ratios = {name: [one / other for one, other in zip(each, bare, strict=True)] for name, each in took.items()}
    bar = Bar(f"≤ {BAR:g}", lambda medians: all(each <= BAR for each in medians.values()))
    title = f"a turn of {1_000 * median(bare):.1f} ms, by the same without"
    measures = [Measure(title, "", ratios, (bar,))]
    print("\n".join(table(measures, tuple(ratios), ())))
    print(f"\nload afterwards {load()}")
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
