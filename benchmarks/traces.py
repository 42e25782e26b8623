"""How much memory and time it takes to read the traces of a job, by their size.

    python benchmarks/traces.py [--nodes 4] [--mib 4,16] [--rounds 20]

A simulated job of these nodes writes its traces, in which a worker fails now and then. Then one moment of each, between two
heartbeats while the workers run, is repeated until its file has this many MiB, as in the trace of weeks. `goodput`
is `elastic goodput`, `what-if` is `elastic what-if --seeds=1`, each in a process of its own. The exit code is 1 if the peak
of memory grows by more than a tenth, or is above a GB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from measuring import BIN, HERE, facts, load, stop_on_signals

from elastic.adapters.report.packed_lines import REACH, packed
from elastic.core import sim
from elastic.core.group.state import Beaten
from elastic.core.rendezvous import Limits
from elastic.core.trace.forms import Shape
from elastic.core.trace.lines import encoded
from elastic.core.trace.steps import Header, Step, Stepped, Trace

sys.path.append(str(HERE.parent / "tests" / "models"))
from recorded import fails, job

APART_S = 20.0
GROWS_MAX, BYTES_MAX = 1.1, 1e9


def recorded(nodes: int, rounds: int) -> tuple[Trace, ...]:
    """Return the traces of a job whose workers fail in all rounds but the last."""
    slots = tuple(f"n{number}" for number in range(nodes))
    failures = [fails(APART_S * number, slots[number % nodes]) for number in range(1, rounds)]
    end = APART_S * (rounds + 20)
    return sim.record(job(*failures, slots=slots, limits=Limits(nodes, nodes, rounds), until=end))


def write(path: Path, trace: Trace, size: int) -> None:
    """Write the trace with as many heartbeats as it takes to make it this large."""
    begin, end = heartbeat(trace.steps)
    block = b""
    with path.open("wb") as file:
        last, recent = None, tuple[Shape, ...]()
        entries: Sequence[Header | Step] = (trace.header, *trace.steps)
        for number, entry in enumerate(entries):
            line, last = encoded(entry, last)
            line, recent = packed(line, recent)
            file.write(line)
            if number == end:
                for _ in range(REACH):  # a packed line refers to lines of this block alone then
                    block, recent = again(entries[begin + 1 : end + 1], recent)
                    file.write(block)
                for _ in range(max(size - file.tell(), 0) // len(block) // 1_000):
                    file.write(block * 1_000)


def heartbeat(steps: Sequence[Step]) -> tuple[int, int]:
    """Return the lines of two heartbeats in a row between which nothing else happened: the last such, by the header's."""
    beats = [
        number for number, step in enumerate(steps, 1) if isinstance(step, Stepped) and isinstance(step.event, Beaten)
    ]
    calm = [(one, other) for one, other in pairwise(beats) if other - one <= 4]
    return calm[-1]


def again(entries: Sequence[Header | Step], recent: tuple[Shape, ...]) -> tuple[bytes, tuple[Shape, ...]]:
    """Return the lines of these steps once more, and what the next line may refer to."""
    lines = list[bytes]()
    for entry in entries:
        line, recent = packed(encoded(entry, None)[0], recent)
        lines.append(line)
    return b"".join(lines), recent


def peak(command: Sequence[str]) -> tuple[float, float, float]:
    """Run this; return the most memory that it had, in MB, the seconds that it took, and those of CPU."""
    began_at = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:2])} ended with {process.returncode}")
    return usage.ru_maxrss * 1_024 / 1e6, time.monotonic() - began_at, usage.ru_utime + usage.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=4, metavar="N", help="[4]")
    parser.add_argument("--mib", default="4,16", metavar="N,N", help="of each node's trace [4,16]")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="[20]")
    given = parser.parse_args()
    print(facts(), "", "| of each node | what | peak, MB | s | CPU, s |", f"|{'---|' * 5}", sep="\n", flush=True)
    traces = recorded(given.nodes, given.rounds)
    peaks = dict[str, list[float]]()
    for mib in map(int, given.mib.split(",")):
        with TemporaryDirectory() as folder:
            files = [Path(folder) / f"{number}.ndjson" for number in range(len(traces))]
            for file, trace in zip(files, traces, strict=True):
                write(file, trace, mib << 20)
            for what, options in (("goodput", ()), ("what-if", ("--seeds=1",))):
                found, took, cpu = peak([str(BIN / "elastic"), what, *map(str, files), *options])
                peaks.setdefault(what, []).append(found)
                print(f"| {mib} MiB | {what} | {found:.0f} | {took:.1f} | {cpu:.1f} |", flush=True)
    print(f"\nload afterwards {load()}")
    holds = all(max(each) <= min(GROWS_MAX * each[0], BYTES_MAX / 1e6) for each in peaks.values())
    return 0 if holds else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
