"""A worker's failure, from what it left behind: the error file first, then the end of its log, then its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.loop import ToRecord
from elastic.adapters.report.worker_ends import UNSTARTABLE, WorkerEnds, read_fault, unstartable_fault
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.workers.attempts import Attempt
from elastic.adapters.workers.logs import NOWHERE
from elastic.adapters.workers.worker_port import Exit, Sink, WorkerSpec
from elastic.core.ranks import Ranks, WorkerRanks
from elastic.core.world import Fault, Node

ME = Node("n", 1)
RANKS = Ranks(1, 2, 5, "default", 5, (WorkerRanks(2, 0, 2), WorkerRanks(3, 1, 3)))
TRACEBACK = """epoch 1
Traceback (most recent call last):
  File "/job/train.py", line 88, in step
    raise KeyError(x)
KeyError: 'x'
"""
RECORDED = {"message": {"message": "ValueError: boom", "extraInfo": {"py_callstack": TRACEBACK, "timestamp": "17"}}}


def attempt(folder: Path, stdout: Sink | None = None, stderr: Sink | None = None) -> Attempt:
    spec = WorkerSpec(1, ("x",), {}, stdout or Sink(), stderr or Sink())
    return Attempt(ME, "gpu-02", 4, RANKS, spec, folder / "error.json")


def fault(of: Attempt, code: int = 1) -> Fault:
    return read_fault(of, Exit(1, 8812, code, 10.0, 12.5), "2025-01-01 13:05:40", lambda timeout_s: None)


def test_a_failure_says_who_where_when_and_how(tmp_path: Path) -> None:
    found = fault(attempt(tmp_path), -9)
    assert (found.node, found.host, found.round, found.rank, found.local_rank) == (ME, "gpu-02", 4, 3, 1)
    assert (found.pid, found.exit_code, found.after_s, found.when) == (8812, -9, 2.5, "2025-01-01 13:05:40")
    assert found.remark.startswith("not by elastic")


def test_a_worker_that_left_nothing_is_known_by_its_exit_code(tmp_path: Path) -> None:
    found = fault(attempt(tmp_path), -11)
    assert (found.message, found.where, found.log, found.tail) == ("killed by SIGSEGV", "", "", ())


def test_the_error_file_is_believed_first(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text("RuntimeError: an echo\n")
    (tmp_path / "error.json").write_text(json.dumps(RECORDED))
    found = fault(attempt(tmp_path, stderr=Sink(log)))
    assert (found.message, found.where) == ("ValueError: boom", "train.py:88 in step")
    assert (found.log, found.tail) == (str(log), ("RuntimeError: an echo",))
    assert (found.callstack, found.error_file) == (TRACEBACK, str(tmp_path / "error.json"))


def test_without_it_the_exception_at_the_end_of_the_log_is(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text(TRACEBACK)
    found = fault(attempt(tmp_path, stderr=Sink(log)))
    assert (found.message, found.where) == ("KeyError: 'x'", "train.py:88 in step")
    assert found.tail == tuple(TRACEBACK.splitlines())


def test_stdout_is_read_where_stderr_is_not_kept(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    log.write_text("last words\n")
    assert fault(attempt(tmp_path, stdout=Sink(log))).tail == ("last words",)
    assert fault(attempt(tmp_path, stdout=Sink(log), stderr=Sink(NOWHERE))).log == str(log)


def test_a_log_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    found = fault(attempt(tmp_path, stderr=Sink(tmp_path / "gone.log")))
    assert (found.message, found.tail) == ("exit code 1", ())


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]", b'{"message": 3}', b'{"message": ""}'])
def test_an_error_file_that_holds_anything_else_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "error.json").write_bytes(content)
    assert fault(attempt(tmp_path)).message


def test_an_attempt_that_stores_nothing_has_a_failure_all_the_same(tmp_path: Path) -> None:
    assert fault(evolve(attempt(tmp_path), error_file=None)).message == "exit code 1"


def test_the_worker_s_output_is_complete_before_it_is_read(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"

    def drain(timeout_s: float) -> None:
        log.write_text("late words\n")

    found = read_fault(attempt(tmp_path, stderr=Sink(log)), Exit(1, 1, 1, 0.0, 0.0), "", drain)
    assert found.tail == ("late words",)


def test_a_failure_that_is_read_late_is_not_told_of_by_the_output_of_the_worker_s_next_start(tmp_path: Path) -> None:
    log, submitted = tmp_path / "stderr.log", list[ToRecord]()
    backend = MemoryBackend(MemoryStore(), SystemClock())
    ends = WorkerEnds(ME, "gpu-02", backend, submitted.append, lambda: "", lambda timeout_s: None)
    log.write_text("of this start\n")
    ends.add(attempt(tmp_path, stderr=Sink(log, console=False)), Exit(1, 1, 1, 0.0, 0.0))
    ends.record_failure(1)
    log.write_text("of this start\nof the next\n")
    assert [each.read().tail for each in submitted] == [("of this start",)]


def test_a_program_that_cannot_be_executed_is_charged_to_the_node_s_first_worker() -> None:
    found = unstartable_fault(ME, "gpu-02", 4, RANKS, "2025-01-01 13:05:40", "x: no such file")
    assert (found.rank, found.local_rank, found.pid, found.exit_code) == (2, 0, 0, UNSTARTABLE)
    assert (found.host, found.round, found.message) == ("gpu-02", 4, "x: no such file")
