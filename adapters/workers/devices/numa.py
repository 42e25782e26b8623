"""The CPUs of each worker under --numa-binding: those near its GPU. The same choices as torch's (torch.numa.binding).

    node            all CPUs of the NUMA node of the GPU whose number is the worker's local rank
    socket          all CPUs of all NUMA nodes of that node's socket
    exclusive       an equal share of the node's cores, each core with all its threads, for each GPU of the node
    core-complex    the CPUs that share one L3 cache (the largest caches first), another for each GPU of the node

Where there is no GPU, the workers are spread over the NUMA nodes in equal blocks, and a worker stands in the GPU's place.
Only CPUs count that this process may use. The kernel is asked through /sys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal, assert_never

from .nvml import DRIVER, Nvml, load_nvml, pci_addresses

Mode = Literal["node", "socket", "exclusive", "core-complex"]
_Cpus = frozenset[int]
_SYS = Path("/sys")
_DATA = ("Data", "Unified")


class CannotBind(ValueError):
    """The kernel does not say what is near what, or there is too little of it. The text says what to do."""


def bindings(
    mode: Mode,
    workers: int,
    gpus: Sequence[str] | None = None,
    allowed: Collection[int] | None = None,
    sys: Path = _SYS,
) -> tuple[_Cpus, ...]:
    """The CPUs of each worker, by local rank. `gpus` are the PCI addresses of those that the workers see, if there are any.
    Raises CannotBind."""
    host = _Host(sys, os.sched_getaffinity(0) if allowed is None else allowed)
    if gpus and workers > len(gpus):
        raise CannotBind(
            f"local rank {len(gpus)} has no GPU, {len(gpus)} are visible; write --nproc-per-node={len(gpus)}"
        )
    homes = [host.node_of(gpu) for gpu in gpus] if gpus else host.spread(workers)
    return tuple(_cpus(mode, host, homes, local_rank) for local_rank in range(workers))


def visible_gpus(visible: str | None, load: Callable[[], Nvml] = load_nvml, driver: Path = DRIVER) -> tuple[str, ...]:
    """The PCI addresses of the GPUs that a program sees; none where there is no driver. Raises CannotBind."""
    try:
        nvml = load()
    except ImportError as error:
        if not driver.exists():
            return ()
        raise CannotBind(
            "GPUs are found by nvidia-ml-py: install elastic-launch as before, with [gpu] behind it, or leave it out"
        ) from error
    try:
        return pci_addresses(nvml, visible)
    except nvml.NVMLError as error:
        raise CannotBind(f"NVML cannot tell where the GPUs are: {error}; leave it out") from error


def _cpus(mode: Mode, host: _Host, homes: Sequence[int], device: int) -> _Cpus:
    home = homes[device]
    peers = [peer for peer, node in enumerate(homes) if node == home]
    match mode:
        case "node":
            found = host.cpus_of(home)
        case "socket":
            socket = host.socket_of(home)
            found = frozenset().union(*(host.cpus_of(node) for node in host.nodes if host.socket_of(node) == socket))
        case "exclusive":
            found = _share(host.cores_of(home), peers.index(device), len(peers), home)
        case "core-complex":
            caches = sorted(host.caches_of(home), key=lambda cpus: (-len(cpus), min(cpus)))
            found = caches[peers.index(device) % len(caches)]
        case other:
            assert_never(other)
    return found


def _share(cores: Sequence[_Cpus], place: int, of: int, node: int) -> _Cpus:
    """The first ones get one core more where they cannot be divided evenly."""
    if len(cores) < of:
        raise CannotBind(f"NUMA node {node} has {len(cores)} cores for {of} workers; write --numa-binding=node")
    each, more = divmod(len(cores), of)
    start = place * each + min(place, more)
    return frozenset().union(*cores[start : start + each + (place < more)])


class _Host:
    """The topology of /sys, as far as this process may use it."""

    def __init__(self, sys: Path, allowed: Collection[int]) -> None:
        self._sys = sys
        self._allowed = frozenset(allowed)
        self._on = {node: cpus for node in self._online() if (cpus := self._cpus(f"node/node{node}/cpulist"))}
        self.nodes = tuple(self._on)
        if not self._on:
            raise CannotBind("no NUMA node of this host has a CPU that may be used here; leave it out")

    def node_of(self, pci: str) -> int:
        """-1, where there is only one node, means that one."""
        node = max(int(self._read(f"bus/pci/devices/{pci}/numa_node")), 0)
        if node not in self._on:
            raise CannotBind(f"NUMA node {node}, that of GPU {pci}, has no CPU that may be used here; leave it out")
        return node

    def spread(self, workers: int) -> list[int]:
        return [self.nodes[worker * len(self.nodes) // workers] for worker in range(workers)]

    def cpus_of(self, node: int) -> _Cpus:
        return self._on[node]

    def socket_of(self, node: int) -> int:
        return int(self._read(f"devices/system/cpu/cpu{min(self._on[node])}/topology/physical_package_id"))

    def cores_of(self, node: int) -> list[_Cpus]:
        return _grouped(self._on[node], lambda cpu: self._numbers(f"cpu/cpu{cpu}/topology/thread_siblings_list"))

    def caches_of(self, node: int) -> list[_Cpus]:
        return _grouped(self._on[node], self._sharing_last_cache)

    def _sharing_last_cache(self, cpu: int) -> Iterable[int]:
        levels: dict[int, str] = {}
        for index in (self._sys / f"devices/system/cpu/cpu{cpu}/cache").glob("index[0-9]*"):
            place = str(index.relative_to(self._sys))
            if self._read(f"{place}/type") in _DATA:
                levels[int(self._read(f"{place}/level"))] = place
        if not levels:
            raise CannotBind(f"the kernel does not say which caches CPU {cpu} has; write --numa-binding=node")
        return _numbers(self._read(f"{levels[max(levels)]}/shared_cpu_list"))

    def _online(self) -> list[int]:
        return sorted(self._numbers("node/online"))

    def _cpus(self, place: str) -> _Cpus:
        return frozenset(self._numbers(place)) & self._allowed

    def _numbers(self, place: str) -> Iterable[int]:
        return _numbers(self._read(f"devices/system/{place}"))

    def _read(self, place: str) -> str:
        try:
            return (self._sys / place).read_text().strip()
        except OSError as error:
            raise CannotBind(f"the kernel does not say what is near what ({error.filename}); leave it out") from error


def _grouped(cpus: Iterable[int], group_of: Callable[[int], Iterable[int]]) -> list[_Cpus]:
    """Sort the groups by their smallest member."""
    groups: dict[int, set[int]] = {}
    for cpu in cpus:
        groups.setdefault(min(group_of(cpu)), set()).add(cpu)
    return [frozenset(groups[first]) for first in sorted(groups)]


def _numbers(text: str) -> list[int]:
    """`0-2,4` is 0, 1, 2, 4."""
    spans = (part.partition("-") for part in text.split(",") if part.strip())
    return [number for low, _, high in spans for number in range(int(low), int(high or low) + 1)]
