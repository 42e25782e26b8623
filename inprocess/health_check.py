"""A wrapper's `health_check`: it raises if this rank must not run another iteration."""

from __future__ import annotations

import abc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..adapters.inprocess.wrapper import health_checks
from ..adapters.inprocess.wrapper.health_checks import NvmlHealthCheck, UnhealthyDevice
from ..adapters.inprocess.wrapper.parameters import count
from ..adapters.workers.devices.nvml import load_nvml, pci_address
from .exception import HealthCheckError, RestartError, TimeoutError
from .state import FrozenState

log = logging.getLogger("elastic.inprocess")


class HealthCheck(abc.ABC):
    """Called at the start of each iteration, and after each fault, when `finalize` is over."""

    @abc.abstractmethod
    def __call__(self, state: FrozenState) -> FrozenState:
        """Return the state, or another one for the next part of a `Compose`."""


class CudaHealthCheck(HealthCheck):
    """Checks that this rank's GPU computes and finishes its work. Does nothing if CUDA is not in use."""

    def __init__(self, timeout: timedelta | float = 30.0) -> None:
        self._check = health_checks.CudaHealthCheck(timeout)

    def __call__(self, state: FrozenState) -> FrozenState:
        try:
            self._check(state)
        except health_checks.TimedOut as late:
            raise TimeoutError(str(late)) from late
        return state


class FaultCounterExceeded(RestartError):
    """This rank has failed too often."""


class FaultCounter(HealthCheck):
    """Makes a rank leave whose own code has failed too often."""

    def __init__(self, max_rank_faults: int | None = None) -> None:
        self.max_rank_faults = count("max_rank_faults", max_rank_faults)
        self.faults_count = 0

    def __call__(self, state: FrozenState) -> FrozenState:
        self.faults_count += state.fn_exception is not None
        most = self.max_rank_faults
        if most is not None and self.faults_count > most:
            raise FaultCounterExceeded(
                f"rank {state.initial_rank}: {self.faults_count} faults of its own, at most {most}"
            )
        return state


def _pynvml() -> Any:
    """Return NVML's module; None where it is not installed."""
    try:
        return load_nvml()
    except ImportError:
        return None


class _Devices:
    """NVML's devices: that of one index, or all. There are none where neither the module nor the device driver is."""

    def __init__(self, index: int | None, load: Callable[[], Any]) -> None:
        self._index = index
        self._load = load

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, list[tuple[int, Any]]]]:
        """Yield the module and the handles by index. Raises HealthCheckError if the device driver does not answer."""
        nvml = self._load()
        if nvml is None or not _begun(nvml):
            yield nvml, []
            return
        try:
            indices = range(nvml.nvmlDeviceGetCount()) if self._index is None else [self._index]
            yield nvml, [(index, nvml.nvmlDeviceGetHandleByIndex(index)) for index in indices]
        except nvml.NVMLError as error:
            which = "a GPU" if self._index is None else f"GPU {self._index}"
            raise HealthCheckError(f"{which}: the device driver does not answer for it ({error}): reset it") from error
        finally:
            nvml.nvmlShutdown()


def _begun(nvml: Any) -> bool:
    absent = tuple(
        getattr(nvml, name)
        for name in ("NVMLError_LibraryNotFound", "NVMLError_DriverNotLoaded")
        if hasattr(nvml, name)
    )
    try:
        nvml.nvmlInit()
    except absent:
        return False
    except nvml.NVMLError as error:
        raise HealthCheckError(f"the device driver does not answer ({error}): reboot the node") from error
    return True


class ChainedGPUHealthCheck(HealthCheck):
    """Checks that the device driver asks for no recovery of the GPU, or of any, and has remapped its failed memory."""

    def __init__(self, device_index: int | None = None, load: Callable[[], Any] = _pynvml) -> None:
        self.device_index = device_index
        self._devices = _Devices(device_index, load)

    def __call__(self, state: FrozenState) -> FrozenState:
        with self._devices.opened() as (nvml, handles):
            uuids = [nvml.nvmlDeviceGetUUID(handle) for _, handle in handles]
        for uuid in uuids:
            try:
                NvmlHealthCheck(lambda: nvml, lambda uuid=uuid: uuid)(state)  # type: ignore[misc]
            except UnhealthyDevice as unhealthy:
                raise HealthCheckError(str(unhealthy)) from unhealthy
        return state


class ChainedNVLHealthCheck(HealthCheck):
    """Warns of links between GPUs that are down. It fails no rank, since a link that was never there is down as well."""

    def __init__(self, device_index: int | None = None, load: Callable[[], Any] = _pynvml) -> None:
        self.device_index = device_index
        self._devices = _Devices(device_index, load)

    def __call__(self, state: FrozenState) -> FrozenState:
        try:
            with self._devices.opened() as (nvml, handles):
                for index, handle in handles:
                    if down := [link for link in range(nvml.NVML_NVLINK_MAX_LINKS) if _is_down(nvml, handle, link)]:
                        log.warning("GPU %s: its links %s are down", index, ", ".join(map(str, down)))
        except HealthCheckError as error:
            log.warning("the links of a GPU could not be checked: %s", error)
        return state


def _is_down(nvml: Any, handle: Any, link: int) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetNvLinkState(handle, link) == nvml.NVML_FEATURE_DISABLED)
    except nvml.NVMLError:
        return False  # no such link


class ChainedNicHealthCheck(HealthCheck):
    """Checks that the InfiniBand device nearest to the GPU has not lost its link since the last check. Without a GPU's
    index, or without such a device, there is nothing to check."""

    def __init__(
        self, device_index: int | None = None, load: Callable[[], Any] = _pynvml, sys_folder: Path = Path("/sys")
    ) -> None:
        self.device_index = device_index
        self._nic = None if device_index is None else _nearest(_pci_folder(device_index, load, sys_folder), sys_folder)
        self._losses = self._lost()

    def __call__(self, state: FrozenState) -> FrozenState:
        before, self._losses = self._losses, self._lost()
        if self._nic is not None and self._losses > before:
            raise HealthCheckError(
                f"{self._nic.name}: its link was lost {self._losses - before} times: check the cable"
            )
        return state

    def _lost(self) -> int:
        """Return how often the device's ports have lost their link."""
        if self._nic is None:
            return 0
        return sum(int(each.read_text()) for each in self._nic.glob("ports/*/counters/link_downed"))


def _pci_folder(index: int, load: Callable[[], Any], sys_folder: Path) -> Path | None:
    try:
        with _Devices(index, load).opened() as (nvml, handles):
            places = [pci_address(nvml, handle) for _, handle in handles]
    except HealthCheckError as error:
        log.warning("GPU %s: its network device is not checked: %s", index, error)
        return None
    return (sys_folder / "bus/pci/devices" / places[0]).resolve() if places else None


def _nearest(gpu: Path | None, sys_folder: Path) -> Path | None:
    """Return the InfiniBand device that shares the longest path of bridges with the GPU."""
    nics = sorted((sys_folder / "class/infiniband").glob("*"))
    if gpu is None or not nics:
        return None
    return max(nics, key=lambda nic: len(os.path.commonpath([gpu, (nic / "device").resolve()])))
