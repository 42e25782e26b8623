"""The NVLink domain of a host, by an NVML of ours that fills in the structure of nvml.h, as that of a driver does."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_char, c_uint, cast
from pathlib import Path
from typing import Any
from uuid import UUID

import pynvml
import pytest
from nvmls import FakeNvml

from elastic.adapters.workers.devices.nvml import nvlink_domain

CLUSTER, HERE = UUID(int=7), Path("/proc/self/status")
NONE = UUID(int=0)
REST = ("status", "cliqueId", "state", "healthMask")


class Fabric(FakeNvml):
    """GPUs, each with its cluster, its clique, its state, and the status of that; None does not support the question."""

    class c_nvmlGpuFabricInfoV_t(Structure):
        """That of nvidia-ml-py 12.550 to 12.560, which is not the driver's."""

        _fields_ = (("version", c_uint), ("clusterUuid", c_char * 80), *[(name, c_uint) for name in REST])

        def __init__(self) -> None:
            super().__init__(version=pynvml.nvmlGpuFabricInfo_v2)

    def __init__(self, *gpus: tuple[UUID, int, int, int] | None, works: bool = True) -> None:
        super().__init__(*(f"GPU-{number}" for number in range(len(gpus))), works=works)
        self._gpus = gpus

    def nvmlDeviceGetGpuFabricInfoV(self, handle: int, pointer: Any) -> None:
        gpu, info = self._gpus[handle], cast(pointer, POINTER(pynvml.c_nvmlGpuFabricInfo_v2_t)).contents
        if gpu is None:
            raise self.NVMLError("Not Supported")
        assert info.version == pynvml.nvmlGpuFabricInfo_v2
        info.clusterUuid[:], info.cliqueId, info.state, info.status = gpu[0].bytes, *gpu[1:]


def test_the_domain_is_the_cluster_and_the_clique_of_all_gpus() -> None:
    nvml = Fabric(*[(CLUSTER, 3, pynvml.NVML_GPU_FABRIC_STATE_COMPLETED, 0)] * 4)
    assert nvlink_domain(lambda: nvml, HERE) == f"{CLUSTER}.3"
    assert nvml.open == 0


@pytest.mark.parametrize(
    "nvml",
    [
        Fabric((NONE, 0, 3, 0)),
        Fabric((CLUSTER, 0, 2, 0)),
        Fabric((CLUSTER, 0, 3, 999)),
        Fabric((CLUSTER, 0, 3, 0), (CLUSTER, 1, 3, 0)),
        Fabric((CLUSTER, 0, 3, 0), None),
        Fabric((CLUSTER, 0, 3, 0), works=False),
        Fabric(),
        FakeNvml("GPU-0"),
    ],
    ids=["one host", "not joined yet", "failed", "two cliques", "not supported", "no driver", "no GPU", "old module"],
)
def test_a_host_that_is_in_no_domain_has_none(nvml: FakeNvml) -> None:
    assert nvlink_domain(lambda: nvml, HERE) is None
    assert nvml.open == 0


def test_without_a_driver_or_the_module_nobody_is_asked() -> None:
    def missing() -> object:
        raise ImportError("pynvml")

    assert nvlink_domain(missing, HERE) is None
    assert nvlink_domain(missing, Path("/no/driver")) is None
