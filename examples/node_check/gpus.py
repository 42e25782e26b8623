#!/usr/bin/env python3
"""Check this host's NVIDIA GPUs by NVML before the node joins a job: count, ECC, row remapping, clocks, NVLink.

    elastic launch --node-check="python -m elastic.examples.node_check.gpus --count=8" ... train.py

Exit code 0: healthy. 1: unfit; the last line says why. 2: NVML is not there, which is a warning only. It needs the package
nvidia-ml-py (elastic's extra gpu), opens no CUDA context and disturbs nothing. XID errors are in the
kernel's log, which root alone may read on many hosts; those of the last hour are counted where it can be read.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

FATAL_XIDS = frozenset({48, 62, 64, 74, 79, 94, 95, 109, 119, 120, 136, 140})
"""Errors after which a GPU needs a reset or a replacement: of memory, of NVLink, of its processor, or off the bus."""
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-f:.]+)\): (\d+)", re.IGNORECASE)
BAD_THROTTLING = {"hardware slowdown": 0x8, "hardware thermal slowdown": 0x40, "power brake": 0x80}
"""Reasons of lower clocks that no workload explains, as NVML numbers them."""


def main() -> int:
    """Print each fault, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check this host's NVIDIA GPUs.")
    parser.add_argument("--count", type=int, help="the GPUs that there must be")
    options = parser.parse_args()
    try:
        import pynvml as nvml
    except ImportError:
        print("no NVML: install elastic-launch as before, with [gpu] behind it")
        return 2
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        print(f"no NVIDIA driver: {error}")
        return 2
    try:
        faults = [*all_gpus(nvml, options.count), *xids(kernel_log())]
    finally:
        nvml.nvmlShutdown()
    print("\n".join(faults) or "healthy")
    return 1 if faults else 0


def all_gpus(nvml: Any, count: int | None) -> Iterator[str]:
    """Yield the faults of all GPUs."""
    there = nvml.nvmlDeviceGetCount()
    if count is not None and there != count:
        yield f"{there} GPUs answer, not {count}: has one fallen off the bus?"
    for index in range(there):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            yield f"GPU {index}: {error}"
            continue
        for look in (memory_errors, rows, throttling, links):
            try:
                yield from (f"GPU {index}: {fault}" for fault in look(nvml, gpu))
            except nvml.NVMLError_NotSupported:
                pass  # this model does not count it
            except nvml.NVMLError as error:
                yield f"GPU {index}: {look.__name__.replace('_', ' ')}: {error}"


def memory_errors(nvml: Any, gpu: Any) -> Iterator[str]:
    """Yield a fault if bits were lost since the driver was loaded."""
    lost = nvml.nvmlDeviceGetTotalEccErrors(gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
    if lost:
        yield f"{lost} uncorrected ECC errors: reset it"


def rows(nvml: Any, gpu: Any) -> Iterator[str]:
    """Yield a fault if a row of memory could not be replaced, or waits for a reset."""
    _, _, is_pending, has_failed = nvml.nvmlDeviceGetRemappedRows(gpu)
    if has_failed:
        yield "a row of its memory could not be remapped: replace it"
    elif is_pending:
        yield "a row of its memory waits to be remapped: reset it"


def throttling(nvml: Any, gpu: Any) -> Iterator[str]:
    """Yield a fault if its clocks are held down by the hardware."""
    reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    held = [name for name, bit in BAD_THROTTLING.items() if reasons & bit]
    if held:
        yield f"its clocks are held down: {', '.join(held)}"


def links(nvml: Any, gpu: Any) -> Iterator[str]:
    """Yield a fault if some of its NVLinks are up and others are not."""
    states = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            states.append(nvml.nvmlDeviceGetNvLinkState(gpu, link))
        except nvml.NVMLError:
            break  # it has no more
    if any(states) and not all(states):
        yield f"NVLinks {', '.join(str(link) for link, up in enumerate(states) if not up)} are down"


def kernel_log() -> str:
    """Return the kernel's messages of the last hour; nothing where they cannot be read."""
    for command in (["journalctl", "-k", "-q", "--since=-1h"], ["dmesg"]):
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return done.stdout
    return ""


def xids(log: str) -> Iterator[str]:
    """Yield a fault for each GPU of which the kernel tells a fatal error."""
    found = {(gpu, int(number)) for gpu, number in XID.findall(log)}
    for gpu, number in sorted(found):
        if number in FATAL_XIDS:
            yield f"GPU at {gpu}: XID {number} in the kernel's log"


if __name__ == "__main__":
    sys.exit(main())
