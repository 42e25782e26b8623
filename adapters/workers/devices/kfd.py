"""The kernel's driver of AMD's GPUs (kfd) lists them in /sys, in the order in which ROCm's programs number them.

ROCR_VISIBLE_DEVICES hides GPUs from a program, by number or by `GPU-` and the unique id in hexadecimal digits. Then
HIP_VISIBLE_DEVICES, or CUDA_VISIBLE_DEVICES where that is unset, chooses among those that are left. Each list ends at the
first entry that names none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ....core.values import frozen
from .nvml import DRIVER

_SYS = Path("/sys")
_NODES = "class/kfd/kfd/topology/nodes"
_ACCELERATORS = ("0x1200", "0x0302")
"""The PCI classes of processing accelerators and of 3D controllers."""
_NAMED_MAX = 4


@frozen
class _Gpu:
    pci: str
    uuid: str


def visible_gpus(environment: Mapping[str, str], workers: int, sys: Path = _SYS) -> tuple[str, ...]:
    """Return the PCI addresses of the GPUs that a program with this environment sees, in its order. Return none if there
    are fewer than workers: the only one may be the graphics unit of an APU, which the program does not use."""
    gpus: Sequence[_Gpu] = _gpus(sys)
    for names in (("ROCR_VISIBLE_DEVICES",), ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")):
        chosen = next((environment[name] for name in names if name in environment), None)
        gpus = gpus if chosen is None else _chosen(gpus, chosen)
    return tuple(gpu.pci for gpu in gpus) if len(gpus) >= workers else ()


def unplaced(sys: Path = _SYS, driver: Path = DRIVER) -> str:
    """Return the sentence for a host whose accelerators no driver places that is known here; empty if it has none."""
    found = sorted(each.parent.name for each in (sys / "bus/pci/devices").glob("*/class") if _accelerates(each))
    if not found or driver.exists() or _gpus(sys):
        return ""
    more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    names = f"{', '.join(found[:_NAMED_MAX])}{more}"
    return f"--numa-binding: no driver tells where these accelerators are ({names}): workers are spread over the NUMA nodes"


def _accelerates(file: Path) -> bool:
    try:
        return file.read_text().startswith(_ACCELERATORS)
    except OSError:
        return False


def _chosen(gpus: Sequence[_Gpu], text: str) -> list[_Gpu]:
    found: list[_Gpu] = []
    for entry in map(str.strip, text.split(",")):
        named = [gpu for number, gpu in enumerate(gpus) if entry in (str(number), gpu.uuid)]
        if not named or named[0] in found:
            break
        found.append(named[0])
    return found


def _gpus(sys: Path) -> list[_Gpu]:
    """Return the GPUs. A node of the topology without SIMD units is a CPU, and one that may not be read is another
    container's."""
    numbers = sorted(int(node.name) for node in (sys / _NODES).glob("*") if node.name.isdigit())
    found = (_properties(sys / _NODES / str(number) / "properties") for number in numbers)
    return [_gpu(properties) for properties in found if properties.get("simd_count", 0) > 0]


def _gpu(properties: Mapping[str, int]) -> _Gpu:
    place, domain = properties.get("location_id", 0), properties.get("domain", 0)
    bus, slot, function = place >> 8 & 0xFF, place >> 3 & 0x1F, place & 7
    return _Gpu(f"{domain:04x}:{bus:02x}:{slot:02x}.{function}", f"GPU-{properties.get('unique_id', 0):x}")


def _properties(file: Path) -> Mapping[str, int]:
    try:
        pairs = (line.split() for line in file.read_text().splitlines())
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    except (OSError, ValueError):
        return {}
