"""The chained health checks, by an NVML and a /sys of ours."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elastic.inprocess import FrozenState
from elastic.inprocess.exception import HealthCheckError, RestartError, TimeoutError
from elastic.inprocess.health_check import (
    ChainedGPUHealthCheck,
    ChainedNicHealthCheck,
    ChainedNVLHealthCheck,
    CudaHealthCheck,
    HealthCheck,
)

STATE = FrozenState(0, 1, 0, 1, 0, 1)


class FakeNvml:
    """Two GPUs, by the recovery that the device driver asks for. The last of three links of each is none; 0 is down."""

    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
    NVML_NVLINK_MAX_LINKS = 3
    NVML_FEATURE_DISABLED = 0

    class NVMLError(Exception):
        pass

    class NVMLError_DriverNotLoaded(NVMLError):
        pass

    def __init__(self, actions: Sequence[int] = (0, 0), links: Sequence[int] = (1, 1), begins: Any = None) -> None:
        self.actions, self.links, self.begins, self.open = actions, links, begins, 0

    def nvmlInit(self) -> None:
        if self.begins:
            raise self.begins
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.actions)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if self.actions[index] < 0:
            raise self.NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return int(uuid[-1])

    def nvmlDeviceGetFieldValues(self, handle: int, fields: list[int]) -> list[SimpleNamespace]:
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=self.actions[handle]))]

    def nvmlDeviceGetRemappedRows(self, handle: int) -> tuple[int, int, bool, bool]:
        return 0, 0, False, False

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:
        if link == len(self.links):
            raise self.NVMLError("no such link")
        return self.links[link]

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=f"00000000:0{handle}:00.0".encode())


@pytest.mark.parametrize(
    ("index", "nvml", "complaint"),
    [
        (None, FakeNvml(), None),
        (0, FakeNvml((0, 2)), None),
        (1, FakeNvml((0, 2)), "GPU-1: the driver asks for recovery: reboot the node"),
        (None, FakeNvml((0, 1)), "GPU-1: the driver asks for recovery: reset it"),
        (0, FakeNvml((-1, 0)), r"GPU 0: the device driver does not answer for it \(GPU is lost\): reset it"),
        (None, FakeNvml(begins=FakeNvml.NVMLError("timeout")), r"the device driver does not answer \(timeout\)"),
        (None, FakeNvml(begins=FakeNvml.NVMLError_DriverNotLoaded()), None),
        (None, None, None),
    ],
)
def test_a_gpu_that_needs_recovery_is_unhealthy(index: int | None, nvml: Any, complaint: str | None) -> None:
    check = ChainedGPUHealthCheck(index, lambda: nvml)
    if complaint is None:
        assert check(STATE) is STATE
    else:
        with pytest.raises(HealthCheckError, match=complaint):
            check(STATE)
    assert nvml is None or nvml.open == 0


def test_links_that_are_down_are_told_and_fail_nobody(caplog: pytest.LogCaptureFixture) -> None:
    assert ChainedNVLHealthCheck(0, lambda: FakeNvml(links=(0, 1)))(STATE) is STATE
    assert "GPU 0: its links 0 are down" in caplog.text
    assert ChainedNVLHealthCheck(1, lambda: FakeNvml((0, -1)))(STATE) is STATE
    assert "the links of a GPU could not be checked: GPU 1: the device driver does not answer" in caplog.text


@pytest.fixture
def sys_folder(tmp_path: Path) -> Path:
    """Two switches, each with a GPU and an InfiniBand device, which has lost its link once."""
    for number in (0, 1):
        switch = tmp_path / f"devices/pci0000:00/switch{number}"
        (switch / f"0000:0{number}:00.0").mkdir(parents=True)
        (switch / "nic").mkdir()
        nic = tmp_path / f"class/infiniband/mlx5_{number}"
        (nic / "ports/1/counters").mkdir(parents=True)
        (nic / "ports/1/counters/link_downed").write_text("1\n")
        (nic / "device").symlink_to(switch / "nic")
        (tmp_path / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"bus/pci/devices/0000:0{number}:00.0").symlink_to(switch / f"0000:0{number}:00.0")
    return tmp_path


def test_the_network_device_beside_the_gpu_may_not_lose_its_link(sys_folder: Path) -> None:
    nearest, other = (ChainedNicHealthCheck(index, FakeNvml, sys_folder) for index in (1, 0))
    assert nearest(STATE) is STATE
    (sys_folder / "class/infiniband/mlx5_1/ports/1/counters/link_downed").write_text("3\n")
    assert other(STATE) is STATE
    with pytest.raises(HealthCheckError, match="mlx5_1: its link was lost 2 times: check the cable"):
        nearest(STATE)
    assert nearest(STATE) is STATE


def test_without_an_index_a_gpu_or_a_network_device_there_is_nothing_to_check(sys_folder: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for index, nvml, folder in (
        (None, FakeNvml(), sys_folder),
        (0, None, sys_folder),
        (0, FakeNvml(), nowhere),
        (0, FakeNvml((-1,)), sys_folder),
    ):
        assert ChainedNicHealthCheck(index, lambda nvml=nvml: nvml, folder)(STATE) is STATE  # type: ignore[misc]


def test_a_check_of_cuda_that_does_not_end_is_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    cuda = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        current_device=lambda: 0,
        synchronize=lambda _: ended.wait(),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    with pytest.raises(TimeoutError, match=r"no answer within 0.01 s"):
        CudaHealthCheck(0.01)(STATE)
    ended.set()
    cuda.is_initialized = lambda: False
    assert CudaHealthCheck(60)(STATE) is STATE
    assert issubclass(TimeoutError, RestartError) and issubclass(CudaHealthCheck, HealthCheck)
