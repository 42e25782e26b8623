"""AMD's GPUs are found where a made /sys has them, in the order in which ROCm's programs number them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from elastic.adapters.workers.devices.kfd import unplaced, visible_gpus
from elastic.adapters.workers.devices.numa import bindings

PLACES = {1: (0, 0xC100), 2: (0, 0x2300), 10: (1, 0x0508)}
"""Each GPU's number among the nodes of the topology: its domain, and bus, slot and function."""
PCI = ("0000:c1:00.0", "0000:23:00.0", "0001:05:01.0")


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """A host with a CPU, three GPUs, and one that belongs to another container."""
    put(tmp_path, 0, "cpu_cores_count 64\nsimd_count 0\n")
    for number, (domain, place) in PLACES.items():
        put(tmp_path, number, f"simd_count 416\nunique_id {0xA0 + number}\nlocation_id {place}\ndomain {domain}\n")
    (tmp_path / "class/kfd/kfd/topology/nodes/3").mkdir()
    return tmp_path


def put(sys: Path, number: int, properties: str) -> None:
    node = sys / f"class/kfd/kfd/topology/nodes/{number}"
    node.mkdir(parents=True)
    (node / "properties").write_text(properties)


@pytest.mark.parametrize(
    ("environment", "seen"),
    [
        ({}, (0, 1, 2)),
        ({"ROCR_VISIBLE_DEVICES": "2,0"}, (2, 0)),
        ({"ROCR_VISIBLE_DEVICES": "2,0", "HIP_VISIBLE_DEVICES": "1"}, (0,)),
        ({"ROCR_VISIBLE_DEVICES": "GPU-a2, GPU-aa"}, (1, 2)),
        ({"CUDA_VISIBLE_DEVICES": "1"}, (1,)),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, (0,)),
        ({"HIP_VISIBLE_DEVICES": "1,7,0"}, (1,)),
        ({"HIP_VISIBLE_DEVICES": "1,1"}, (1,)),
        ({"HIP_VISIBLE_DEVICES": ""}, ()),
    ],
)
def test_a_program_sees_the_gpus_that_its_variables_choose(
    sys: Path, environment: Mapping[str, str], seen: tuple[int, ...]
) -> None:
    assert visible_gpus(environment, 1, sys) == tuple(PCI[number] for number in seen)


def test_a_worker_is_bound_to_the_cpus_near_its_gpu(sys: Path) -> None:
    (sys / "devices/system/node").mkdir(parents=True)
    (sys / "devices/system/node/online").write_text("0-1\n")
    for node, cpus in enumerate(("0-3", "4-7")):
        (sys / f"devices/system/node/node{node}").mkdir()
        (sys / f"devices/system/node/node{node}/cpulist").write_text(f"{cpus}\n")
    for pci, node in zip(PCI, (1, 0, 1), strict=True):
        (sys / f"bus/pci/devices/{pci}").mkdir(parents=True)
        (sys / f"bus/pci/devices/{pci}/numa_node").write_text(f"{node}\n")
    found = bindings("node", 2, visible_gpus({"HIP_VISIBLE_DEVICES": "1,2"}, 2, sys), range(8), sys)
    assert [sorted(cpus) for cpus in found] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_the_gpus_of_a_host_that_has_fewer_than_workers_place_none(sys: Path) -> None:
    """As the graphics unit of an APU, which the kernel's driver lists too."""
    assert len(visible_gpus({}, 3, sys)) == 3
    assert visible_gpus({}, 4, sys) == ()


def test_a_host_without_the_driver_has_none(tmp_path: Path) -> None:
    assert visible_gpus({}, 1, tmp_path) == ()


def test_accelerators_that_nobody_can_place_are_named(sys: Path, tmp_path: Path) -> None:
    host = tmp_path / "other"
    for number, kind in enumerate(("0x120000", "0x030200", "0x020000", "0x120000", "0x120000", "0x120000")):
        (host / f"bus/pci/devices/0000:0{number}:00.0").mkdir(parents=True)
        (host / f"bus/pci/devices/0000:0{number}:00.0/class").write_text(f"{kind}\n")
    (host / "bus/pci/devices/0000:09:00.0/class").mkdir(parents=True)  # which cannot be read
    said = unplaced(host, tmp_path / "none")
    assert "(0000:00:00.0, 0000:01:00.0, 0000:03:00.0, 0000:04:00.0 and 1 more)" in said
    assert unplaced(host, tmp_path) == "", "NVML places them"
    assert unplaced(sys, tmp_path / "none") == ""
