"""Health checks: functions of the state that raise when this rank must not run another round.

A wrapper's `health_check` takes one, or several as one (`Compose`). A check that may hang in a device driver, where no
signal reaches it, runs in its own thread and is given up when its time has passed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from ....core.values import frozen
from ... import threads
from ...workers.devices.nvml import load_nvml
from ..rank.callbacks import State
from .parameters import span

Check: TypeAlias = Callable[[State], object]

RECOVERY_NEEDED = {1: "reset it", 2: "reboot the node", 3: "drain its peer-to-peer traffic", 4: "drain and reset it"}
"""NVML's recovery actions; 0 means that none is needed."""


class UnhealthyDevice(RuntimeError):
    """Raised for a device that must not be used. The text names the device and says what to do."""


class TimedOut(TimeoutError):
    """Raised when a health check did not end in its time."""


def within(timeout: timedelta | float, check: Check) -> Check:
    """Return the check with a time limit. A check that hangs in a device driver cannot be ended: its thread is left
    behind."""
    timeout_s = span("timeout", timeout)

    def limited(state: State) -> None:
        raised: list[BaseException] = []

        def run() -> None:
            try:
                check(state)
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
                raised.append(error)

        thread = threading.Thread(target=run, name="elastic-health", daemon=True)
        threads.start(thread)
        thread.join(timeout_s)
        if thread.is_alive():
            name = getattr(check, "__name__", type(check).__name__)
            raise TimedOut(f"health check {name}: no answer within {timeout_s:g} s")
        if raised:
            raise raised[0]

    return limited


class CudaHealthCheck:
    """Checks that this rank's GPU computes and finishes its work. Does nothing if CUDA is not in use."""

    def __init__(self, timeout: timedelta | float = 30.0) -> None:
        self._timeout_s = span("timeout", timeout)

    def __call__(self, state: State) -> None:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
            return
        device = torch.cuda.current_device()  # of this thread: the check's own would have another
        within(self._timeout_s, lambda _: _computes(torch, device))(state)


def _computes(torch: Any, device: int) -> None:
    torch.cuda.synchronize(device)
    one = torch.ones(1, device=f"cuda:{device}")
    if float((one + one).item()) != 2.0:
        raise UnhealthyDevice(f"cuda:{device} adds 1 and 1 wrongly: replace the device")
    torch.cuda.synchronize(device)


class Nvml(Protocol):
    """The part of the module `pynvml` (package nvidia-ml-py) that is used."""

    @property
    def NVMLError(self) -> type[Exception]: ...
    def nvmlInit(self) -> object: ...
    def nvmlShutdown(self) -> object: ...
    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object: ...
    def nvmlDeviceGetRemappedRows(self, handle: object) -> tuple[int, int, bool, bool]: ...
    def nvmlDeviceGetFieldValues(self, handle: object, fields: list[int]) -> Any: ...


def _uuid_in_use() -> str | None:
    """Return the UUID of the GPU that torch uses in this thread; None if CUDA is not in use."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"


@frozen
class NvmlHealthCheck:
    """Checks that the device driver knows this rank's GPU, asks for no recovery of it, and has remapped its failed
    memory."""

    load: Callable[[], Nvml] = load_nvml
    uuid: Callable[[], str | None] = _uuid_in_use

    def __call__(self, state: State) -> None:
        if (uuid := self.uuid()) is None:
            return
        nvml = self.load()
        try:
            nvml.nvmlInit()
            try:
                self._look(nvml, uuid)
            finally:
                nvml.nvmlShutdown()
        except nvml.NVMLError as error:
            raise UnhealthyDevice(f"{uuid}: the driver does not answer for it ({error}): reset it") from error

    def _look(self, nvml: Nvml, uuid: str) -> None:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        if (action := _recovery(nvml, handle)) in RECOVERY_NEEDED:
            raise UnhealthyDevice(f"{uuid}: the driver asks for recovery: {RECOVERY_NEEDED[action]}")
        if _remapping_failed(nvml, handle):
            raise UnhealthyDevice(f"{uuid}: failed memory could not be remapped: replace the device")


def _recovery(nvml: Nvml, handle: object) -> int:
    """Return the recovery action; 0 also if the device driver or the module is too old to know it."""
    field = getattr(nvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
    if field is None:
        return 0
    value = nvml.nvmlDeviceGetFieldValues(handle, [field])[0]
    return 0 if value.nvmlReturn else int(value.value.uiVal)


def _remapping_failed(nvml: Nvml, handle: object) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetRemappedRows(handle)[3])
    except getattr(nvml, "NVMLError_NotSupported", ()):
        return False  # the device has no memory that could be remapped
