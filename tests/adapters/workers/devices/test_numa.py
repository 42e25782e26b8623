"""Which CPUs a worker is bound to: what torch's own code chooses, on hosts of paper; and a real process that is bound."""

from __future__ import annotations

import builtins
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from attrs import frozen
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from nvmls import FakeNvml
from torch.numa import binding

from elastic.adapters.workers.devices.numa import CannotBind, Mode, bindings, visible_gpus
from elastic.adapters.workers.devices.nvml import Nvml

MODES: tuple[Mode, ...] = ("node", "socket", "exclusive", "core-complex")


@frozen
class Host:
    """Cores with `threads` threads each, numbered as Linux does: first one thread of each core, then the others."""

    sockets: int = 2
    nodes_per_socket: int = 2
    caches_per_node: int = 2
    cores_per_cache: int = 2
    threads: int = 2

    @property
    def nodes(self) -> int:
        return self.sockets * self.nodes_per_socket

    @property
    def cores_per_node(self) -> int:
        return self.caches_per_node * self.cores_per_cache

    @property
    def cores(self) -> int:
        return self.nodes * self.cores_per_node

    def threads_of(self, cores: Collection[int]) -> str:
        return ",".join(str(core + self.cores * thread) for thread in range(self.threads) for core in cores)

    def write(self, sys: Path, gpus: Sequence[int]) -> None:
        """`gpus` are the nodes they sit on."""
        put(sys / "devices/system/node/online", f"0-{self.nodes - 1}")
        put(sys / "devices/system/node/possible", f"0-{self.nodes - 1}")
        for node in range(self.nodes):
            first = node * self.cores_per_node
            put(
                sys / f"devices/system/node/node{node}/cpulist",
                self.threads_of(range(first, first + self.cores_per_node)),
            )
        for core in range(self.cores):
            cache = core // self.cores_per_cache * self.cores_per_cache
            for thread in range(self.threads):
                cpu = sys / f"devices/system/cpu/cpu{core + self.cores * thread}"
                socket = core // (self.cores_per_node * self.nodes_per_socket)
                put(cpu / "topology/physical_package_id", str(socket))
                put(cpu / "topology/thread_siblings_list", self.threads_of([core]))
                of_cache = self.threads_of(range(cache, cache + self.cores_per_cache))
                for index, kind, level, shared in (
                    (0, "Data", 1, self.threads_of([core])),
                    (1, "Instruction", 4, self.threads_of([core])),
                    (2, "Unified", 3, of_cache),
                ):
                    put(cpu / f"cache/index{index}/type", kind)
                    put(cpu / f"cache/index{index}/level", str(level))
                    put(cpu / f"cache/index{index}/shared_cpu_list", shared)
        for number, node in enumerate(gpus):
            put(sys / f"bus/pci/devices/{pci(number)}/numa_node", str(node))


def pci(number: int) -> str:
    return f"0000:{number + 16:02x}:00.0"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def torch_s_choice(mode: Mode, sys: Path, gpus: int, allowed: Collection[int]) -> list[frozenset[int]] | None:
    """Of torch's own code, which asks /sys and CUDA; here, paper. None if it gives up."""

    def opened(path: str, *args: Any, **kwargs: Any) -> Any:
        return builtins.open(str(path).replace("/sys", str(sys), 1), *args, **kwargs)

    def listed(path: str) -> list[str]:
        return os.listdir(path.replace("/sys", str(sys), 1))

    def properties(index: int) -> SimpleNamespace:
        return SimpleNamespace(pci_domain_id=0, pci_bus_id=index + 16, pci_device_id=0)

    options = binding.NumaOptions(binding.AffinityMode(mode))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binding, "open", opened, raising=False)
        patch.setattr(binding, "os", SimpleNamespace(listdir=listed, path=os.path))
        patch.setattr(binding, "_get_gpu_count", lambda: gpus)
        patch.setattr(binding, "_get_allowed_cpu_indices_for_current_thread", lambda: set(allowed))
        patch.setattr(torch.cuda, "get_device_properties", properties)
        try:
            return [
                frozenset(binding._get_logical_cpus_to_bind_to(gpu_index=gpu, numa_options=options))
                for gpu in range(gpus)
            ]
        except RuntimeError:
            return None


HOSTS = st.builds(Host, *(st.integers(1, 2) for _ in range(3)), st.integers(1, 3), st.integers(1, 2))


@given(HOSTS, st.data(), st.sampled_from(MODES))
@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
def test_the_cpus_are_those_that_torch_chooses(
    tmp_path_factory: pytest.TempPathFactory, host: Host, data: st.DataObject, mode: Mode
) -> None:
    gpus = data.draw(st.lists(st.integers(0, host.nodes - 1), min_size=1, max_size=6), label="nodes of GPUs")
    cpus = range(host.cores * host.threads)
    allowed = data.draw(st.sets(st.sampled_from(cpus), min_size=len(cpus) // 2) | st.just(set(cpus)), label="allowed")
    sys = tmp_path_factory.mktemp("sys")
    host.write(sys, gpus)
    on = [any(cpu // host.cores_per_node % host.nodes == node for cpu in allowed) for node in range(host.nodes)]
    assume(all(on))  # torch fails with min() of nothing, or binds to nothing
    theirs = torch_s_choice(mode, sys, len(gpus), allowed)
    if theirs is None:
        with pytest.raises(CannotBind, match=r"NUMA node \d+ has \d+ cores for \d+ workers; write --numa-binding=node"):
            bindings(mode, len(gpus), [pci(number) for number in range(len(gpus))], allowed, sys)
    else:
        assert bindings(mode, len(gpus), [pci(number) for number in range(len(gpus))], allowed, sys) == tuple(theirs)


def on_paper(tmp_path: Path, mode: Mode, workers: int, gpus: Sequence[int] = (), **shape: int) -> list[list[int]]:
    host = Host(**shape)
    host.write(tmp_path, gpus)
    there = [pci(number) for number in range(len(gpus))]
    return [sorted(cpus) for cpus in bindings(mode, workers, there, range(host.cores * host.threads), tmp_path)]


def test_without_gpus_workers_are_spread_over_the_nodes_in_equal_blocks(tmp_path: Path) -> None:
    first, second = [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]
    assert on_paper(tmp_path, "node", 4, nodes_per_socket=1) == [first, first, second, second]
    assert on_paper(tmp_path, "exclusive", 4, nodes_per_socket=1) == [
        [0, 1, 8, 9],
        [2, 3, 10, 11],
        [4, 5, 12, 13],
        [6, 7, 14, 15],
    ]
    assert on_paper(tmp_path, "core-complex", 2, nodes_per_socket=1) == [[0, 1, 8, 9], [4, 5, 12, 13]]
    assert on_paper(tmp_path, "socket", 1, nodes_per_socket=1) == [first]


def test_a_gpu_that_the_kernel_gives_no_node_is_on_the_only_one(tmp_path: Path) -> None:
    assert on_paper(tmp_path, "node", 1, [-1], sockets=1, nodes_per_socket=1, threads=1) == [[0, 1, 2, 3]]


def test_a_worker_without_a_gpu_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(CannotBind, match=r"^local rank 2 has no GPU, 2 are visible; write --nproc-per-node=2$"):
        on_paper(tmp_path, "node", 3, [0, 1])


def test_a_host_that_does_not_say_what_is_near_what_is_named_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(CannotBind, match=r"does not say what is near what \(.*/node/online\); leave it out$"):
        bindings("node", 1, (), {0}, tmp_path)
    Host().write(tmp_path, [9])
    with pytest.raises(CannotBind, match=r"^NUMA node 9, that of GPU 0000:10:00\.0, has no CPU that may be used here"):
        bindings("node", 1, [pci(0)], range(32), tmp_path)
    with pytest.raises(CannotBind, match=r"^no NUMA node of this host has a CPU that may be used here; leave it out$"):
        bindings("node", 1, (), {999}, tmp_path)


def test_a_host_that_says_nothing_of_caches_can_be_bound_in_another_way(tmp_path: Path) -> None:
    Host(threads=1).write(tmp_path, [])
    for index in tmp_path.rglob("cache/index*/type"):
        index.write_text("Instruction\n")
    with pytest.raises(CannotBind, match=r"does not say which caches CPU \d+ has; write --numa-binding=node$"):
        bindings("core-complex", 1, (), range(16), tmp_path)


def missing() -> Nvml:
    raise ImportError("No module named 'pynvml'")


def test_where_there_is_no_driver_there_are_no_gpus_and_where_there_is_one_it_must_be_asked(tmp_path: Path) -> None:
    assert visible_gpus(None, missing, tmp_path / "none") == ()
    with pytest.raises(CannotBind, match=r"^GPUs are found by nvidia-ml-py: install .*, with \[gpu\] behind it, or"):
        visible_gpus(None, missing, tmp_path)


class Placed(FakeNvml):
    """As NVML spells it."""

    def nvmlDeviceGetPciInfo(self, handle: object) -> object:
        spelled: tuple[str | bytes, ...] = ("00000000:10:00.0", b"00000000:AF:00.0", "00000001:11:00.0")
        assert isinstance(handle, int)
        return SimpleNamespace(busId=spelled[handle])


def test_gpus_are_found_where_nvml_says_in_the_order_in_which_the_workers_see_them() -> None:
    nvml = Placed("GPU-1", "GPU-2", "GPU-3", slices=(("MIG-a",), ("MIG-b",)))
    there = ("0000:10:00.0", "0000:af:00.0", "0001:11:00.0")
    assert visible_gpus(None, lambda: nvml) == there
    assert visible_gpus("2,0", lambda: nvml) == (there[2], there[0])
    assert visible_gpus("GPU-2", lambda: nvml) == visible_gpus("MIG-b", lambda: nvml) == (there[1],)
    assert visible_gpus(None, lambda: Placed(works=False)) == ()
    assert nvml.open == 0


def test_an_nvml_that_fails_is_quoted() -> None:
    with pytest.raises(CannotBind, match=r"^NVML cannot tell where the GPUs are: GPU is lost; leave it out$"):
        visible_gpus(None, lambda: Placed("GPU-lost"))
