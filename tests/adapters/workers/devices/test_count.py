"""How many workers, by an NVML of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nvmls import FakeNvml

from elastic.adapters.workers.devices import count as devices
from elastic.adapters.workers.devices.count import Kind, count_devices, few_cpus, usable_cpus
from elastic.adapters.workers.devices.nvml import NoDevices, Nvml
from elastic.adapters.workers.start.spawner import bound_to

UUIDS = ("GPU-8a31-aa", "GPU-8a32-bb", "GPU-91ff-cc", "GPU-a0a0-dd")
CPUS = len(os.sched_getaffinity(0))
NOWHERE = Path("/no/driver")


@pytest.fixture(autouse=True)
def no_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has."""
    monkeypatch.setattr(devices, "OTHERS", {"gpu": (), "auto": ()})


def gpus(visible: str | None, *uuids: str | bytes, slices: tuple[tuple[str | None, ...], ...] = ()) -> int:
    """What is counted of these (or the four) GPUs; 0 for NoDevices."""
    nvml = FakeNvml(*(uuids or UUIDS), slices=slices)
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    try:
        return count_devices("gpu", environment, lambda: nvml)
    except NoDevices:
        return 0
    finally:
        assert nvml.open == 0


def test_cpu_is_the_number_of_cpus_and_asks_nobody() -> None:
    assert count_devices("cpu", {}, lambda: FakeNvml(works=False)) == usable_cpus()


def test_cpus_that_this_process_may_not_use_do_not_count() -> None:
    with bound_to(frozenset({max(os.sched_getaffinity(0))})):
        assert count_devices("cpu") == 1


@pytest.mark.parametrize(("quota", "usable"), [(None, CPUS), (1000.0, CPUS), (1.9, 1), (0.2, 1)])
def test_cpus_for_which_the_cgroup_has_no_time_do_not_count(quota: float | None, usable: int) -> None:
    assert usable_cpus(lambda: quota) == usable


def test_workers_that_share_fewer_cpus_than_the_host_has_are_told() -> None:
    there = os.cpu_count() or 1
    assert few_cpus(8, lambda: 0.5).startswith(
        f"8 workers share 1 CPU of {there}; Slurm gives more by srun --cpus-per-task"
    )
    assert few_cpus(1, lambda: 0.5) == few_cpus(10_000, lambda: None) == ""


@pytest.mark.parametrize(
    ("visible", "count"),
    [
        (None, 4),
        ("", 0),
        ("-1", 0),
        ("none", 0),
        ("0", 1),
        ("3,1", 2),
        (" 0 , 2", 2),
        ("1gpu2,+2ampere", 2),
        ("0,4,1", 1),
        ("0,-1,1", 1),
        ("0,,1", 1),
        ("GPU-8a31,GPU-91", 2),
        ("GPU-8a31-aa,0", 1),
        ("GPU-8a", 0),
        ("GPU-8a32,GPU-ffff,GPU-91", 1),
    ],
)
def test_the_gpus_that_a_program_sees_are_counted(visible: str | None, count: int) -> None:
    assert gpus(visible) == count


def test_gpu_with_none_visible_quotes_the_variable() -> None:
    with pytest.raises(NoDevices, match="no NVIDIA GPU is visible with CUDA_VISIBLE_DEVICES='-1'; use cpu, or write a"):
        count_devices("gpu", {"CUDA_VISIBLE_DEVICES": "-1"}, lambda: FakeNvml(*UUIDS))


def test_uuids_may_be_bytes_as_in_old_versions() -> None:
    assert gpus("GPU-8a31", b"GPU-8a31-aa") == 1


@pytest.mark.parametrize("visible", ["0,0", "1,2,1", "GPU-91,GPU-91ff", "MIG-a,MIG-a1"])
@pytest.mark.parametrize("kind", ["gpu", "auto"])
def test_a_device_named_twice_is_an_error(kind: Kind, visible: str) -> None:
    nvml = FakeNvml(*UUIDS, slices=(("MIG-a1",),))
    with pytest.raises(NoDevices, match=f"CUDA_VISIBLE_DEVICES={visible} names a device twice"):
        count_devices(kind, {"CUDA_VISIBLE_DEVICES": visible}, lambda: nvml)
    assert nvml.open == 0


def test_a_sliced_gpu_counts_as_one_and_of_named_slices_a_program_sees_one() -> None:
    slices = (("MIG-a1", None, "MIG-a2"), (), ("MIG-c1",))
    assert gpus(None, slices=slices) == 4
    assert gpus("MIG-a2", slices=slices) == 1
    assert gpus("MIG-a1,MIG-c1", slices=slices) == 1
    assert gpus("MIG-b,MIG-a1", slices=slices) == 0


def test_auto_is_the_gpus_if_there_are_any_and_the_cpus_if_not() -> None:
    assert count_devices("auto", {}, lambda: FakeNvml(*UUIDS)) == 4
    assert count_devices("auto", {}, FakeNvml) == CPUS
    assert count_devices("auto", {}, lambda: FakeNvml(works=False)) == CPUS
    assert count_devices("auto", {"CUDA_VISIBLE_DEVICES": ""}, lambda: FakeNvml(*UUIDS)) == CPUS


@pytest.mark.parametrize("nvml", [FakeNvml(), FakeNvml(works=False)])
def test_gpu_without_any_says_what_to_do(nvml: FakeNvml) -> None:
    with pytest.raises(NoDevices, match=r"^there is no NVIDIA GPU here; use cpu, or write a number, like --nproc"):
        count_devices("gpu", {}, lambda: nvml)


def test_an_nvml_that_fails_half_way_is_shut_down_and_quoted() -> None:
    nvml = FakeNvml("GPU-lost")
    with pytest.raises(NoDevices, match="NVML cannot count the GPUs: GPU is lost; write a number"):
        count_devices("auto", {"CUDA_VISIBLE_DEVICES": "GPU-lost"}, lambda: nvml)
    assert nvml.open == 0


def missing() -> Nvml:
    raise ImportError("No module named 'pynvml'")


def test_without_the_package_gpu_says_how_to_install_it_and_auto_does_so_if_there_is_a_driver(tmp_path: Path) -> None:
    for kind, driver in (("gpu", NOWHERE), ("auto", tmp_path)):
        with pytest.raises(NoDevices, match=r"^GPUs are counted by nvidia-ml-py: install .*, with \[gpu\] behind it"):
            count_devices(kind, {}, load=missing, driver=driver)  # type: ignore[arg-type]
    assert count_devices("auto", {}, load=missing, driver=NOWHERE) == CPUS


def test_the_real_module_has_all_that_is_used_of_it() -> None:
    pynvml = pytest.importorskip("pynvml")
    assert not {name for name in vars(Nvml) if name.startswith("nvml")} - set(vars(pynvml))
    assert count_devices("auto") >= 1


def test_devices_that_nvml_does_not_know_are_counted_by_torch_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine has none, and torch is asked for them all the same."""
    monkeypatch.setattr(devices, "OTHERS", {"gpu": (tmp_path,), "auto": (tmp_path,)})
    assert count_devices("auto", {}, missing, NOWHERE) == CPUS
    with pytest.raises(NoDevices, match=r"^torch sees no xpu here; use cpu, or write a number, like --nproc"):
        count_devices("xpu", {}, missing, NOWHERE)
    with pytest.raises(NoDevices, match=r"^write a number of workers, 1 or more, or one of auto, cpu, gpu, xpu$"):
        devices.count_others("zeus")


PLUGIN = """
import sys, torch
def load():
    torch.utils.rename_privateuse1_backend("npx")
    torch._register_device_module("npx", sys.modules[__name__])
def is_available(): return True
def device_count(): return 7
"""


def test_devices_of_a_vendor_s_plugin_are_counted_by_the_name_that_it_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "npx_plugin.py").write_text(PLUGIN)
    (tmp_path / "npx-1.dist-info").mkdir()
    (tmp_path / "npx-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: npx\nVersion: 1\n")
    (tmp_path / "npx-1.dist-info" / "entry_points.txt").write_text("[torch.backends]\nnpx = npx_plugin:load\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert devices.count_others("npx") == 7


def test_where_torch_cannot_be_asked_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(NoDevices, match=r"^such devices .* torch, which cannot: ImportError: no torch here; use cpu"):
        count_devices("xpu")
