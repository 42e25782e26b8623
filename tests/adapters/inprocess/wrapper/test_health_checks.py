"""Health checks: with a limit of time, and of GPUs, by a torch and an NVML of ours."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest
from attrs import define, field

from elastic.adapters.inprocess.rank.callbacks import State
from elastic.adapters.inprocess.wrapper.health_checks import (
    CudaHealthCheck,
    NvmlHealthCheck,
    TimedOut,
    UnhealthyDevice,
    within,
)

STATE = State(0, 1, 0, 1, 0, 1)
UUID = "GPU-8a31"


def test_a_check_that_ends_in_its_time_says_what_it_says() -> None:
    told: list[State] = []
    within(30.0, told.append)(STATE)
    assert told == [STATE]

    def fails(state: State) -> None:
        raise ValueError("disk full")

    with pytest.raises(ValueError, match="disk full"):
        within(30.0, fails)(STATE)


def test_a_check_that_hangs_is_given_up_by_name() -> None:
    over = threading.Event()

    def asks_the_driver(state: State) -> None:
        over.wait()

    with pytest.raises(TimedOut, match=r"health check asks_the_driver: no answer within 0\.05 s"):
        within(0.05, asks_the_driver)(STATE)
    over.set()


@define
class FakeCuda:
    """What is used of torch, with a device that adds as it likes."""

    one_and_one: float = 2.0
    initialized: bool = True
    hangs: bool = False
    over: threading.Event = field(factory=threading.Event)

    @property
    def cuda(self) -> FakeCuda:
        return self

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self.initialized

    def current_device(self) -> int:
        return 3

    def synchronize(self, device: int) -> None:
        assert device == 3
        if self.hangs:
            self.over.wait()

    def ones(self, count: int, device: str) -> FakeCuda:
        assert (count, device) == (1, "cuda:3")
        return self

    def __add__(self, other: FakeCuda) -> FakeCuda:
        return self

    def item(self) -> float:
        return self.one_and_one


def test_a_gpu_that_computes_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", FakeCuda())
    CudaHealthCheck()(STATE)


def test_a_gpu_that_computes_wrongly_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", FakeCuda(one_and_one=3.0))
    with pytest.raises(UnhealthyDevice, match="cuda:3 adds 1 and 1 wrongly"):
        CudaHealthCheck()(STATE)


def test_a_gpu_that_does_not_come_to_an_end_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = FakeCuda(hangs=True)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(TimedOut):
        CudaHealthCheck(timeout=0.05)(STATE)
    torch.over.set()


def test_where_cuda_is_not_in_use_there_is_nothing_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", FakeCuda(one_and_one=3.0, initialized=False))
    CudaHealthCheck()(STATE)
    NvmlHealthCheck(load=lambda: pytest.fail("asked for NVML"))(STATE)


class FakeNvml:
    """One GPU. `answers` False: the driver does not answer for it."""

    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230

    class NVMLError(Exception):
        pass

    class NVMLError_NotSupported(NVMLError):
        pass

    def __init__(self, action: int = 0, remapped: bool | None = False, answers: bool = True) -> None:
        self._action, self._remapped, self._answers = action, remapped, answers
        self.open = 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if not self._answers:
            raise self.NVMLError("GPU is lost")
        return uuid

    def nvmlDeviceGetFieldValues(self, handle: object, fields: list[int]) -> list[SimpleNamespace]:
        assert (handle, fields) == (UUID, [self.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=self._action))]

    def nvmlDeviceGetRemappedRows(self, handle: object) -> tuple[int, int, bool, bool]:
        if self._remapped is None:
            raise self.NVMLError_NotSupported("no row remapping")
        return 0, 0, False, self._remapped


@pytest.mark.parametrize(
    ("nvml", "complaint"),
    [
        (FakeNvml(), None),
        (FakeNvml(remapped=None), None),
        (FakeNvml(action=1), "GPU-8a31: the driver asks for recovery: reset it"),
        (FakeNvml(action=2), "GPU-8a31: the driver asks for recovery: reboot the node"),
        (FakeNvml(remapped=True), "GPU-8a31: failed memory could not be remapped: replace the device"),
        (FakeNvml(answers=False), r"GPU-8a31: the driver does not answer for it \(GPU is lost\): reset it"),
    ],
)
def test_what_the_driver_says_of_the_gpu_decides(nvml: FakeNvml, complaint: str | None) -> None:
    check = NvmlHealthCheck(lambda: nvml, lambda: UUID)
    if complaint is None:
        check(STATE)
    else:
        with pytest.raises(UnhealthyDevice, match=complaint):
            check(STATE)
    assert nvml.open == 0
