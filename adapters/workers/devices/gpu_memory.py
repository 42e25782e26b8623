"""Memory of a GPU that dead workers still hold: the driver may need seconds to give it back, and the next generation would
find it missing. It is waited for, at most _GIVE_BACK_TIMEOUT_S.

The driver tells by NVML which processes hold memory on which GPU. It is asked only for process ids of workers that have
died, so what others hold on a shared GPU does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from ....core.values import frozen
from ..worker_port import CannotStart
from .nvml import DRIVER, Nvml, asked, load_nvml, visible_devices

_GIVE_BACK_TIMEOUT_S = 10.0
_LOOK_S = 0.02
GIB = 1 << 30


@frozen
class Held:
    """The memory that one process holds on one GPU. `size` is in bytes; None if the driver does not say."""

    gpu: int
    pid: int
    size: int | None


def wait_until_given_back(
    dead: Collection[int],
    visible: str | None,
    interrupted: Callable[[], bool] = lambda: False,
    timeout_s: float = _GIVE_BACK_TIMEOUT_S,
    load: Callable[[], Nvml] = load_nvml,
    driver: Path = DRIVER,
) -> None:
    """Wait until the dead hold no memory of a GPU that the workers see. Raises CannotStart after the time-out. Does not wait
    where there is no driver or no NVML, or it does not answer."""
    if not dead or not driver.exists():
        return
    try:
        nvml = load()
    except ImportError:
        return
    try:
        with asked(nvml) as answers:
            if answers:
                _wait(nvml, dead, visible, interrupted, time.monotonic() + timeout_s)
    except nvml.NVMLError:
        return


def _wait(
    nvml: Nvml, dead: Collection[int], visible: str | None, interrupted: Callable[[], bool], until: float
) -> None:
    while held := list(_held(nvml, dead, visible)):
        if interrupted():
            return
        if time.monotonic() >= until:
            raise CannotStart(said(held))
        time.sleep(_LOOK_S)


def _held(nvml: Nvml, dead: Collection[int], visible: str | None) -> Iterator[Held]:
    for gpu in dict.fromkeys(visible_devices(nvml, visible)):
        for process in nvml.nvmlDeviceGetComputeRunningProcesses(nvml.nvmlDeviceGetHandleByIndex(gpu)):
            if process.pid in dead:
                yield Held(gpu, process.pid, process.usedGpuMemory)


def said(held: Collection[Held]) -> str:
    each = "; ".join(f"GPU {one.gpu}{_size(one.size)} by pid {one.pid}" for one in held)
    return f"workers that have died still hold memory of GPUs: {each}; look at nvidia-smi, and reset or drain this node"


def _size(size: int | None) -> str:
    return f": {size / GIB:.1f} GiB" if size else ""
