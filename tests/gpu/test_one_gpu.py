"""One GPU under the real command: whose memory it holds and when, NCCL through restarts, and what is said of failures.

`make gpu` runs this with nothing but torch, pytest and the wheels that `make gpu-wheels` has collected.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from launches import Launcher, Told
from processes import held_by

PROGRAMS = Path(__file__).parent / "programs"
TAKES_MEMORY, WAITS = PROGRAMS / "takes_memory.py", PROGRAMS / "waits.py"
RESTARTS = 3
MANY_RESTARTS = 20
CALLS = 200
WARM = 2
"""What is held is compared from this round on."""
GPU_MIB = 256
"""Free memory of the GPU may differ by this from round to round, and what a process holds of it from call to call."""
OWN_KB = 100_000
"""The memory of a process may grow by this over all restarts: half a megabyte for each call."""
FEW = 8
"""So may its descriptors and threads: NCCL keeps some for as long as the process lives."""


def gpus_of(pid: int) -> set[str]:
    """The driver's files that this process has open."""
    files = (os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir())
    return {file for file in files if file.startswith("/dev/nvidia")}


def test_a_standby_has_imported_torch_and_holds_no_gpu(on_gpu: Launcher) -> None:
    running = on_gpu("--standby", TAKES_MEMORY, "0")
    (worker,) = running.hears(1)
    (standby,) = running.stands_by(1, [worker])
    assert "libtorch" in Path(f"/proc/{standby}/maps").read_text()
    assert gpus_of(worker.pid) and not gpus_of(standby)
    running.open_gate(0)
    ended = running.ends()
    assert ended.code == 0 and "opens a GPU" not in ended.err


@pytest.mark.parametrize("options", [(), ("--standby",)], ids=["new workers", "standbys"])
def test_a_new_worker_finds_the_memory_of_the_dead_one_free(on_gpu: Launcher, options: tuple[str, ...]) -> None:
    """And `gpu` is one worker here."""
    numbers = ("--nproc-per-node=gpu", f"--max-restarts={RESTARTS}")
    running = on_gpu(*numbers, *options, TAKES_MEMORY, str(RESTARTS))
    for round in range(RESTARTS + 1):
        (worker,) = running.hears(1)
        assert (worker.round, worker.words) == (round, "of 1")
        running.open_gate(round)
    assert running.ends().code == 0


@pytest.mark.parametrize("options", [("--standby",), ()], ids=["standbys", "new workers"])
def test_nccl_comes_up_again_in_each_round_and_memory_stays_flat(on_gpu: Launcher, options: tuple[str, ...]) -> None:
    last = MANY_RESTARTS if options else RESTARTS
    running = on_gpu("--nproc-per-node=gpu", f"--max-restarts={last}", *options, PROGRAMS / "trains.py", str(last))
    free, held = [], []
    for round in range(last + 1):
        (worker,) = running.hears(1)
        of, size, _, mib = worker.words.split()
        assert (worker.round, of, size) == (round, "of", "1")
        free.append(int(mib))
        held.append(held_by(running.pid))
        running.open_gate(round)
    ended = running.ends()
    assert ended.code == 0, ended.err
    assert max(free) - min(free) <= GPU_MIB, free
    grown = [late - early for early, late in zip(held[WARM], held[-1], strict=True)]
    assert max(grown[:2]) <= FEW and grown[2] <= OWN_KB, held


def test_a_function_is_called_again_with_a_new_group_of_nccl_and_memory_stays_flat(on_gpu: Launcher) -> None:
    """Each call goes through an abort, and through the health checks of CUDA and of NVML."""
    quiet = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
    program = ("--nproc-per-node=gpu", "--restart-scope=rank", PROGRAMS / "called_again.py", str(CALLS))
    running = on_gpu(*program, environment=quiet, traced=False)
    early, late = (_held(*running.hears(1)) for _ in range(2))
    assert [each.words for each in running.hears(1)] == ["ended"]
    ended = running.ends()
    assert ended.code == 0, ended.err
    assert f" · 0 restarts, {CALLS} restarts of wrapped functions, " in ended.err
    *counts, own, gpu = (after - before for before, after in zip(early, late, strict=True))
    assert max(counts) <= FEW and own <= OWN_KB and gpu <= GPU_MIB, (early, late)


def _held(told: Told) -> list[int]:
    word, *numbers = told.words.split()
    assert word == "holds"
    return [int(number) for number in numbers]


def test_the_check_of_gpus_finds_this_one_healthy(on_gpu: Launcher) -> None:
    check = f"--node-check={sys.executable} -m elastic.examples.node_check.gpus"
    running = on_gpu(check, PROGRAMS / "trains.py", "0")
    running.hears(1)
    running.open_gate(0)
    ended = running.ends()
    assert ended.code == 0 and "node check" not in ended.err.lower(), ended.err


def test_a_wait_for_a_kernel_is_told_as_a_hang_with_its_place(on_gpu: Launcher) -> None:
    (line,) = (
        number
        for number, text in enumerate(WAITS.read_text().splitlines(), 1)
        if text.strip() == "torch.cuda.synchronize()"
    )
    running = on_gpu("--hang-timeout=5", "--shutdown-timeout=5", WAITS)
    running.hears(1)
    running.says("suspected hang: no rank of this node made progress for ")
    running.says(f" · rank 0 at waits.py:{line} in main")
    running.signal(signal.SIGTERM)
    assert running.ends().code == 128 + signal.SIGTERM


def test_a_lack_of_the_gpu_s_memory_is_told_as_such(on_gpu: Launcher) -> None:
    ended = on_gpu(PROGRAMS / "takes_too_much.py").ends()
    assert ended.code == 1
    assert "OutOfMemoryError: CUDA out of memory" in ended.err and "takes_too_much.py" in ended.err, ended.err
