"""The number of workers of a node, for `--nproc-per-node` gpu, auto, cpu, xpu and the devices of a vendor's plugin.

GPUs are counted through NVML (`nvml`). Devices that NVML does not know (AMD's, Intel's, a plugin's) are counted by torch, in
a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NoReturn

from ...secret_variables import without_secrets
from ..cgroups import cpu_quota
from .nvml import DRIVER, VARIABLE, NoDevices, Nvml, asked, load_nvml, visible_devices

Kind = Literal["gpu", "auto", "cpu", "xpu"]
OTHERS = {"gpu": (Path("/dev/kfd"),), "auto": (Path("/dev/kfd"), Path("/dev/dri/renderD128"), Path("/dev/accel"))}
"""One of these exists if an accelerator may be here that NVML does not know."""
_PROGRAM = Path(__file__).with_name("count_by_torch.py")
_TORCH_TIMEOUT_S = 120.0
_NUMBER = "write a number, like --nproc-per-node=8"


def count_devices(
    kind: Kind,
    environment: Mapping[str, str] = os.environ,
    load: Callable[[], Nvml] = load_nvml,
    driver: Path = DRIVER,
) -> int:
    """Return the number of devices, at least 1. `load` gives the NVML, or raises ImportError. Raises NoDevices."""
    if kind == "cpu":
        return usable_cpus()
    if kind == "xpu":
        return count_others(kind)
    if not driver.exists() and any(path.exists() for path in OTHERS[kind]):
        return _count_by_torch(kind) or (usable_cpus() if kind == "auto" else _no("torch sees no GPU here"))
    try:
        gpus = _visible(load(), environment.get(VARIABLE))
    except ImportError as error:
        if kind == "auto" and not driver.exists():
            return usable_cpus()
        text = f"GPUs are counted by nvidia-ml-py: install elastic-launch as before, with [gpu] behind it, or {_NUMBER}"
        raise NoDevices(text) from error
    if not gpus and kind == "gpu":
        raise NoDevices(f"{_none(environment.get(VARIABLE))}; use cpu, or {_NUMBER}")
    return gpus or usable_cpus()


def count_others(kind: str) -> int:
    """Return the number of devices of a kind that only torch knows, at least 1. Raises NoDevices."""
    found = _count_by_torch(kind)
    if found is None:
        raise NoDevices("write a number of workers, 1 or more, or one of auto, cpu, gpu, xpu")
    return found or _no(f"torch sees no {kind} here")


def _count_by_torch(kind: str) -> int | None:
    """Return the number that torch sees; None if it knows no such kind. Raises NoDevices if torch cannot be asked."""
    try:
        told = subprocess.run(
            [sys.executable, "-P", str(_PROGRAM), kind],
            env=without_secrets(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TORCH_TIMEOUT_S,
            text=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1:]
        _no(f"such devices are counted by torch, which cannot: {''.join(why)}")
    return int(told.stdout) if told.stdout.strip() else None


def _no(why: str) -> NoReturn:
    raise NoDevices(f"{why}; use cpu, or {_NUMBER}")


def usable_cpus(quota: Callable[[], float | None] = cpu_quota) -> int:
    """Return how many CPUs this process may use: as many as it is bound to, and no more than its cgroup has time for."""
    bound, limit = len(os.sched_getaffinity(0)), quota()
    return bound if limit is None else min(bound, max(int(limit), 1))


def few_cpus(workers: int, quota: Callable[[], float | None] = cpu_quota) -> str:
    """Return the sentence for a node whose workers share fewer CPUs than they are, though the host has more; else ''."""
    if workers == 1:
        return ""
    usable, there = usable_cpus(quota), os.cpu_count() or 1
    if workers <= usable or usable == there:
        return ""
    cpus = "1 CPU" if usable == 1 else f"{usable} CPUs"
    more = "Slurm gives more by srun --cpus-per-task, a container by its CPU limit"
    return f"{workers} workers share {cpus} of {there}; {more}"


def _none(visible: str | None) -> str:
    return "there is no NVIDIA GPU here" if visible is None else f"no NVIDIA GPU is visible with {VARIABLE}={visible!r}"


def _visible(nvml: Nvml, visible: str | None) -> int:
    """Return the number of GPUs that a program sees; 0 also if there is no driver to ask."""
    try:
        with asked(nvml) as answers:
            return len(visible_devices(nvml, visible)) if answers else 0
    except nvml.NVMLError as error:
        raise NoDevices(f"NVML cannot count the GPUs: {error}; {_NUMBER}") from error
