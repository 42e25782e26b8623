"""One GPU under the real command: whose memory it holds, and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launches import Launcher

TAKES_MEMORY = Path(__file__).parent / "programs" / "takes_memory.py"
RESTARTS = 3


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
