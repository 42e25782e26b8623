"""How many workers one node runs, for `--nproc-per-node` gpu, auto, cpu, xpu and what a vendor's plugin calls its devices.

GPUs are counted through NVML, which opens no CUDA context: a context would take memory on each GPU for the agent's
whole life. NVML knows all GPUs of the machine; CUDA_VISIBLE_DEVICES says which of them a program sees, and it is read
here as CUDA and torch read it:

    not set                   all
    0,2                       these, up to the first that does not exist; `2gpu` is 2, anything else ends the list
    GPU-8a3f,GPU-91           these, by the start of their UUID, up to the first that is unknown or could be two
    MIG-…                     the first, if it exists: CUDA gives a program one slice and no more
    a device named twice      none, in CUDA; here an error, since nobody means that
    empty                     none

A GPU cut into MIG slices counts as one when the variable is not set, as in torch.

Devices that NVML does not know (AMD's, Intel's, a plugin's) are counted by torch, in a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NoReturn, Protocol, cast

Kind = Literal["gpu", "auto", "cpu", "xpu"]
DRIVER = Path("/proc/driver/nvidia/version")
"""There if the NVIDIA driver is loaded."""
OTHERS = {"gpu": (Path("/dev/kfd"),), "auto": (Path("/dev/kfd"), Path("/dev/dri/renderD128"), Path("/dev/accel"))}
"""There if an accelerator may be here that NVML does not know."""
PROGRAM = Path(__file__).parents[1] / "helpers" / "device_count.py"
TORCH_TIMEOUT_S = 120.0
VARIABLE = "CUDA_VISIBLE_DEVICES"
_NUMBER = "write a number, like --nproc-per-node=8"


class NoDevices(ValueError):
    """There is nothing to count; the text says what to do."""


class Nvml(Protocol):
    """What is used of the module `pynvml` (package nvidia-ml-py)."""

    @property
    def NVMLError(self) -> type[Exception]: ...
    def nvmlInit(self) -> object: ...
    def nvmlShutdown(self) -> object: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...
    def nvmlDeviceGetUUID(self, handle: object) -> str: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: object, index: int) -> object: ...


def load_nvml() -> Nvml:
    import pynvml

    return cast(Nvml, pynvml)


def count_devices(
    kind: Kind,
    environment: Mapping[str, str] = os.environ,
    load: Callable[[], Nvml] = load_nvml,
    driver: Path = DRIVER,
) -> int:
    """At least 1, or NoDevices. `load` gives the NVML, or raises ImportError."""
    if kind == "cpu":
        return _cpus()
    if kind == "xpu":
        return count_others(kind)
    if not driver.exists() and any(path.exists() for path in OTHERS[kind]):
        return count_by_torch(kind) or (_cpus() if kind == "auto" else _no("gpu", "torch sees no GPU here"))
    try:
        gpus = _visible(load(), environment.get(VARIABLE))
    except ImportError as error:
        if kind == "auto" and not driver.exists():
            return _cpus()
        text = f"{kind}: GPUs are counted by nvidia-ml-py: pip install elastic-launch[gpu], or {_NUMBER}"
        raise NoDevices(text) from error
    if not gpus and kind == "gpu":
        raise NoDevices(f"gpu: {_none(environment.get(VARIABLE))}; use cpu, or {_NUMBER}")
    return gpus or _cpus()


def count_others(kind: str) -> int:
    """Of a kind that only torch knows; at least 1, or NoDevices."""
    found = count_by_torch(kind)
    if found is None:
        raise NoDevices("write a number of workers, 1 or more, or one of auto, cpu, gpu, xpu")
    return found or _no(kind, f"torch sees no {kind} here")


def count_by_torch(kind: str) -> int | None:
    """What torch sees; None if it knows no such kind. Raises NoDevices if torch cannot be asked."""
    try:
        asked = subprocess.run(
            [sys.executable, str(PROGRAM), kind],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TORCH_TIMEOUT_S,
            text=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1:]
        _no(kind, f"such devices are counted by torch, which cannot: {''.join(why)}")
    return int(asked.stdout) if asked.stdout.strip() else None


def _no(kind: str, why: str) -> NoReturn:
    raise NoDevices(f"{kind}: {why}; use cpu, or {_NUMBER}")


def _cpus() -> int:
    return os.cpu_count() or 1


def _none(visible: str | None) -> str:
    return "there is no NVIDIA GPU here" if visible is None else f"no NVIDIA GPU is visible with {VARIABLE}={visible!r}"


def _visible(nvml: Nvml, visible: str | None) -> int:
    """How many GPUs a program sees; 0 also if there is no driver to ask."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return 0
    try:
        return _select(nvml, nvml.nvmlDeviceGetCount(), visible)
    except nvml.NVMLError as error:
        raise NoDevices(f"NVML cannot count the GPUs: {error}; {_NUMBER}") from error
    finally:
        nvml.nvmlShutdown()


def _select(nvml: Nvml, count: int, visible: str | None) -> int:
    if visible is None or count == 0:
        return count
    if visible.startswith("MIG-"):
        return min(1, _by_uuid(visible, "MIG-", _slices(nvml, count)))
    if visible.startswith("GPU-"):
        return _by_uuid(visible, "GPU-", [_uuid(nvml, device) for device in _devices(nvml, count)])
    return _by_index(visible, count)


def _by_index(visible: str, count: int) -> int:
    chosen: list[int] = []
    for entry in visible.split(","):
        number = re.match(r"\+?\d+", entry.strip(), re.ASCII)
        if number is None or int(number[0]) >= count:
            break
        chosen.append(_once(int(number[0]), chosen, visible))
    return len(chosen)


def _by_uuid(visible: str, prefix: str, known: Sequence[str]) -> int:
    chosen: list[int] = []
    for entry in visible.split(","):
        matches = [index for index, uuid in enumerate(known) if entry.startswith(prefix) and uuid.startswith(entry)]
        if len(matches) != 1:
            break
        chosen.append(_once(matches[0], chosen, visible))
    return len(chosen)


def _once(device: int, chosen: Sequence[int], visible: str) -> int:
    if device in chosen:
        raise NoDevices(f"{VARIABLE}={visible} names a device twice, and CUDA then shows none: name each once")
    return device


def _devices(nvml: Nvml, count: int) -> list[object]:
    return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]


def _uuid(nvml: Nvml, handle: object) -> str:
    uuid: str | bytes = nvml.nvmlDeviceGetUUID(handle)  # bytes in old versions
    return uuid.decode() if isinstance(uuid, bytes) else uuid


def _slices(nvml: Nvml, count: int) -> list[str]:
    """The UUIDs of all MIG slices."""
    found = []
    for device in _devices(nvml, count):
        for slot in range(_slots(nvml, device)):
            try:
                found.append(_uuid(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, slot)))
            except nvml.NVMLError:
                continue  # a slot that is not in use
    return found


def _slots(nvml: Nvml, device: object) -> int:
    try:
        return nvml.nvmlDeviceGetMaxMigDeviceCount(device)
    except nvml.NVMLError:
        return 0  # it has no MIG
