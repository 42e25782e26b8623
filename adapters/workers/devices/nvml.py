"""Asks NVML for this host's GPUs: which a program sees, where each sits, who holds memory on it, in which NVLink domain.

It opens no CUDA context: a context would take memory on each GPU for the agent's whole life. NVML knows all GPUs of the
machine; CUDA_VISIBLE_DEVICES says which of them a program sees, and it is read here as CUDA and torch read it:

    not set                   all
    0,2                       these, up to the first that does not exist; `2gpu` is 2, anything else ends the list
    GPU-8a3f,GPU-91           these, by the start of their UUID, up to the first that is unknown or could be two
    MIG-…                     the first, if it exists: CUDA gives a program one slice and no more
    a device named twice      none, in CUDA; here an error, since nobody means that
    empty                     none

A GPU cut into MIG slices counts as one when the variable is not set, as in torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

VARIABLE = "CUDA_VISIBLE_DEVICES"
DRIVER = Path("/proc/driver/nvidia/version")
"""Exists if the NVIDIA driver is loaded."""
FABRIC_COMPLETED = 3
"""The state of a GPU that has joined its NVLink domain. A host whose GPUs reach no other host's has a UUID of zeros."""
FABRIC_VERSION = 0x02000024
"""Version 2 of nvml.h's nvmlGpuFabricInfoV_t, of 36 bytes."""


class NoDevices(ValueError):
    """There is nothing to count; the text says what to do."""


class Process(Protocol):
    """A process that holds memory of a GPU."""

    @property
    def pid(self) -> int: ...
    @property
    def usedGpuMemory(self) -> int | None: ...


class Nvml(Protocol):
    """The part of the module `pynvml` (package nvidia-ml-py) that is used here."""

    @property
    def NVMLError(self) -> type[Exception]: ...
    def nvmlInit(self) -> object: ...
    def nvmlShutdown(self) -> object: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...
    def nvmlDeviceGetPciInfo(self, handle: object) -> object: ...
    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Sequence[Process]: ...
    def nvmlDeviceGetUUID(self, handle: object) -> str: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: object, index: int) -> object: ...


def load_nvml() -> Any:
    """Return the module. Raises ImportError."""
    import pynvml

    return pynvml


@contextmanager
def asked(nvml: Nvml) -> Iterator[bool]:
    """NVML opened for some questions; False if there is no driver to ask. Questions may raise its NVMLError."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        nvml.nvmlShutdown()


def visible_devices(nvml: Nvml, visible: str | None) -> tuple[int, ...]:
    """NVML's numbers of the GPUs that a program sees with CUDA_VISIBLE_DEVICES as given, in the program's order."""
    count = nvml.nvmlDeviceGetCount()
    if visible is None or count == 0:
        return tuple(range(count))
    if visible.startswith("MIG-"):
        slices = _slices(nvml, count)
        return tuple(slices[found][0] for found in _by_uuid(visible, "MIG-", [uuid for _, uuid in slices])[:1])
    if visible.startswith("GPU-"):
        return tuple(_by_uuid(visible, "GPU-", [_uuid(nvml, device) for device in _devices(nvml, count)]))
    return tuple(_by_index(visible, count))


def pci_addresses(nvml: Nvml, visible: str | None) -> tuple[str, ...]:
    """Return the PCI addresses of the GPUs that a program sees, as /sys/bus/pci/devices has them; none without a driver."""
    with asked(nvml) as answers:
        devices = visible_devices(nvml, visible) if answers else ()
        return tuple(pci_address(nvml, nvml.nvmlDeviceGetHandleByIndex(device)) for device in devices)


def pci_address(nvml: Nvml, handle: object) -> str:
    """Return the PCI address of one GPU, in the same form."""
    found: str | bytes = getattr(nvml.nvmlDeviceGetPciInfo(handle), "busId", "")
    text = found.decode() if isinstance(found, bytes) else found
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def nvlink_domain(load: Callable[[], Any] = load_nvml, driver: Path = DRIVER) -> str | None:
    """Return the NVLink domain of this host's GPUs: the cluster's UUID, and the clique. None: there is no driver, NVML does
    not know it, or the GPUs are in none, or in several."""
    try:
        nvml = load() if driver.exists() else None
    except ImportError:
        return None
    if nvml is None or not hasattr(nvml, "nvmlDeviceGetGpuFabricInfoV"):
        return None
    try:
        with asked(nvml) as answers:
            devices = _devices(nvml, nvml.nvmlDeviceGetCount()) if answers else []
            domains = {_domain(nvml, device) for device in devices}
    except nvml.NVMLError:
        return None
    return domains.pop() if len(domains) == 1 else None


def _domain(nvml: Any, device: object) -> str | None:
    """Return the NVLink domain of one GPU; None: it has not joined one."""
    from ctypes import Structure, byref, c_ubyte, c_uint  # few jobs need these
    from uuid import UUID

    class FabricInfo(Structure):
        """Has the layout of nvml.h. The module's own has a UUID of 80 characters in its versions 12.550 to 12.560."""

        _fields_ = (
            ("version", c_uint),
            ("clusterUuid", c_ubyte * 16),
            ("status", c_uint),
            ("cliqueId", c_uint),
            ("state", c_ubyte),
            ("healthMask", c_uint),
        )

    info = FabricInfo(version=FABRIC_VERSION)
    nvml.nvmlDeviceGetGpuFabricInfoV(device, byref(info))
    cluster = UUID(bytes=bytes(info.clusterUuid))
    has_joined = info.state == FABRIC_COMPLETED and not info.status and cluster.int
    return f"{cluster}.{info.cliqueId}" if has_joined else None


def _by_index(visible: str, count: int) -> list[int]:
    chosen: list[int] = []
    for entry in visible.split(","):
        number = re.match(r"\+?\d+", entry.strip(), re.ASCII)
        if number is None or int(number[0]) >= count:
            break
        chosen.append(_once(int(number[0]), chosen, visible))
    return chosen


def _by_uuid(visible: str, prefix: str, known: Sequence[str]) -> list[int]:
    chosen: list[int] = []
    for entry in visible.split(","):
        matches = [index for index, uuid in enumerate(known) if entry.startswith(prefix) and uuid.startswith(entry)]
        if len(matches) != 1:
            break
        chosen.append(_once(matches[0], chosen, visible))
    return chosen


def _once(device: int, chosen: Sequence[int], visible: str) -> int:
    if device in chosen:
        raise NoDevices(f"{VARIABLE}={visible} names a device twice, and CUDA then shows none: name each once")
    return device


def _devices(nvml: Nvml, count: int) -> list[object]:
    return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]


def _uuid(nvml: Nvml, handle: object) -> str:
    uuid: str | bytes = nvml.nvmlDeviceGetUUID(handle)  # bytes in old versions
    return uuid.decode() if isinstance(uuid, bytes) else uuid


def _slices(nvml: Nvml, count: int) -> list[tuple[int, str]]:
    """Yield all MIG slices: the GPU's number and the slice's UUID."""
    found = []
    for number, device in enumerate(_devices(nvml, count)):
        for slot in range(_slots(nvml, device)):
            try:
                found.append((number, _uuid(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, slot))))
            except nvml.NVMLError:
                continue  # a slot that is not in use
    return found


def _slots(nvml: Nvml, device: object) -> int:
    try:
        return nvml.nvmlDeviceGetMaxMigDeviceCount(device)
    except nvml.NVMLError:
        return 0  # it has no MIG
