#!/usr/bin/env python3
"""Check this host before it joins a job: load, memory, and disks.

    elastic launch --node-check="python -m elastic.examples.node_check.host --free-disk=/scratch:50" ... train.py

Exit code 0: healthy. 1: unfit; the last line says why. Each disk is written to, flushed and read again, since a disk
that fills or has turned read-only is the commonest fault that nobody sees before the first checkpoint.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

GB = 10**9
PROBE = os.urandom(1 << 20)


def main() -> int:
    """Print each fault, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check this host's load, memory and disks.")
    parser.add_argument("--max-load", type=float, default=4.0, help="runnable processes per CPU [default: 4]")
    parser.add_argument("--free-memory", type=float, default=1.0, help="GB that must be available [default: 1]")
    parser.add_argument("--free-disk", action="append", default=[], metavar="DIR:GB", help="may be given several times")
    parser.add_argument("--slow-disk", type=float, default=10.0, help="seconds for 1 MiB, flushed [default: 10]")
    options = parser.parse_args()
    faults = [*load(options.max_load), *memory(options.free_memory)]
    for each in options.free_disk or ["/tmp:0.1"]:
        folder, _, size = each.rpartition(":")
        faults += disk(Path(folder), float(size), options.slow_disk)
    print("\n".join(faults) or "healthy")
    return 1 if faults else 0


def load(most: float) -> Iterator[str]:
    """Yield a fault if more processes want to run than the CPUs can take."""
    cpus = len(os.sched_getaffinity(0))
    if (runnable := os.getloadavg()[0] / cpus) > most:
        yield f"load: {runnable:.1f} runnable processes per CPU, more than {most:g}: what else runs on this host?"


def memory(least_gb: float) -> Iterator[str]:
    """Yield a fault if less memory is available, or if the hardware has lost pages."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    found = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}
    if (free := found["MemAvailable"]) < least_gb * GB:
        yield f"memory: {free / GB:.1f} GB available, less than {least_gb:g}"
    if corrupted := found.get("HardwareCorrupted", 0):
        yield f"memory: {corrupted} bytes are corrupted (HardwareCorrupted in /proc/meminfo): replace the module"


def disk(folder: Path, least_gb: float, slow_s: float) -> Iterator[str]:
    """Yield a fault if the disk is full, refuses what is written, gives back something else, or is too slow."""
    probe = folder / f".node_check_{os.getpid()}"
    began = time.monotonic()
    try:
        room = os.statvfs(folder)
        if (free := room.f_bavail * room.f_frsize) < least_gb * GB:
            yield f"disk {folder}: {free / GB:.1f} GB free, less than {least_gb:g}"
        with open(probe, "xb") as file:
            file.write(PROBE)
            file.flush()
            os.fsync(file.fileno())
        if probe.read_bytes() != PROBE:
            yield f"disk {folder}: it gives back something else than was written"
    except OSError as error:
        yield f"disk {folder}: {(error.strerror or str(error)).lower()}"
    finally:
        probe.unlink(missing_ok=True)
    if (took := time.monotonic() - began) > slow_s:
        yield f"disk {folder}: 1 MiB took {took:.1f} s, longer than {slow_s:g}"


if __name__ == "__main__":
    sys.exit(main())
