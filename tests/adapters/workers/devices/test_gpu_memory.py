"""Memory that dead workers still hold on a GPU, by an NVML of ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, frozen
from nvmls import FakeNvml

from elastic.adapters.workers.devices.gpu_memory import GIB, wait_until_given_back
from elastic.adapters.workers.devices.nvml import Nvml, Process
from elastic.adapters.workers.worker_port import CannotStart

NOWHERE = Path("/no/driver")


@frozen
class Holder:
    pid: int
    usedGpuMemory: int | None = None


class Holding(FakeNvml):
    """Each look takes one entry of a GPU's list, the last one stays: who holds memory then."""

    def __init__(self, *looks: list[list[Holder]], works: bool = True) -> None:
        super().__init__(*(f"GPU-{number}" for number in range(len(looks))), works=works)
        self._looks = looks

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Sequence[Process]:
        assert isinstance(handle, int)
        looks = self._looks[handle]
        return looks.pop(0) if len(looks) > 1 else looks[0]


@define
class Asked:
    nvml: FakeNvml
    count: int = 0

    def load(self) -> Nvml:
        self.count += 1
        return self.nvml


def wait(
    nvml: FakeNvml, *dead: int, visible: str | None = None, timeout_s: float = 30.0, driver: Path | None = None
) -> int:
    """How often NVML was opened."""
    asked = Asked(nvml)
    wait_until_given_back(dead, visible, lambda: False, timeout_s, asked.load, driver or Path(os.devnull))
    assert nvml.open == 0
    return asked.count


def test_what_the_dead_still_hold_is_waited_for() -> None:
    looks = [[Holder(7, GIB), Holder(8)], [Holder(7, GIB)], [Holder(8)], [Holder(99)]]
    assert wait(Holding(looks, [[]]), 7, 8) == 1
    assert looks == [[Holder(99)]]


def test_what_is_not_given_back_in_time_is_said_with_gpu_size_and_process() -> None:
    nvml = Holding([[]], [[Holder(7, 5 * GIB // 2), Holder(99, GIB)]], [[Holder(8)]])
    with pytest.raises(CannotStart) as raised:
        wait(nvml, 7, 8, timeout_s=0.05)
    assert str(raised.value) == (
        "workers that have died still hold memory of GPUs: GPU 1: 2.5 GiB by pid 7; GPU 2 by pid 8; look at nvidia-smi, and "
        "reset or drain this node"
    )
    assert nvml.open == 0


def test_only_gpus_that_the_workers_see_count() -> None:
    assert wait(Holding([[Holder(7)]], [[]]), 7, visible="1") == 1
    with pytest.raises(CannotStart, match="GPU 0 by pid 7"):
        wait(Holding([[Holder(7)]], [[]]), 7, visible="1,0", timeout_s=0.0)


def test_where_nobody_has_died_or_no_driver_is_there_nobody_is_asked() -> None:
    assert wait(Holding([[Holder(7)]])) == 0
    assert wait(Holding([[Holder(7)]]), 7, driver=NOWHERE) == 0


def test_a_driver_that_does_not_answer_is_not_waited_for() -> None:
    assert wait(Holding([[Holder(7)]], works=False), 7) == 1

    class Failing(Holding):
        def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Sequence[Process]:
            raise self.NVMLError("Unknown Error")

    assert wait(Failing([[Holder(7)]]), 7) == 1


def test_a_signal_ends_the_wait() -> None:
    signals = iter([False, False, True])
    nvml = Holding([[Holder(7)]])
    wait_until_given_back([7], None, lambda: next(signals), 30.0, lambda: nvml, Path(os.devnull))
    assert list(signals) == [] and nvml.open == 0


def missing() -> Nvml:
    raise ImportError


def test_without_the_package_there_is_nothing_to_wait_for() -> None:
    wait_until_given_back([7], None, load=missing, driver=Path(os.devnull))
