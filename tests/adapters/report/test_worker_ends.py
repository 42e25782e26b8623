"""A worker's failure, from what it left behind: the error file first, then the end of its log, then its exit code."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import pytest
from attrs import define, evolve, field
from processes import TIMEOUT_S

from elastic.adapters.clock import SystemClock
from elastic.adapters.disk import Disk
from elastic.adapters.rendezvous.loop import ToRecord
from elastic.adapters.report.worker_ends import UNSTARTABLE, WorkerEnds, read_fault, unstartable_fault
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import FAULTS
from elastic.adapters.workers.messages.error_files import STILL_RUNNING
from elastic.adapters.workers.messages.reports import Report, What
from elastic.adapters.workers.start.attempts import Attempt
from elastic.adapters.workers.worker_port import NOWHERE, Exit, Sink, WorkerSpec
from elastic.core.group.state import Record
from elastic.core.ranks import Ranks, WorkerRanks
from elastic.core.world import Fault, Node, Origin

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
    disk = Disk()
    try:
        return read_fault(of, Exit(1, 8812, code, 10.0, 12.5), disk, when="2025-01-01 13:05:40")
    finally:
        disk.close()


def test_a_failure_says_who_where_when_and_how(tmp_path: Path) -> None:
    found = fault(attempt(tmp_path), -9)
    assert (found.node, found.host, found.round, found.rank, found.local_rank) == (ME, "gpu-02", 4, 3, 1)
    assert (found.pid, found.exit_code, found.after_s, found.when) == (8812, -9, 2.5, "2025-01-01 13:05:40")
    assert found.remark.startswith(("sent by another process (not elastic", "not sent by elastic"))


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


@define
class Output:
    """Output that is in the log when it is waited for, or at the second time only."""

    log: Path
    text: str
    is_late: bool = False
    opened: threading.Event = field(factory=threading.Event)
    """It is waited for until then."""
    drains: int = 0

    def drain(self, timeout_s: float) -> bool:
        assert self.opened.wait(TIMEOUT_S)
        self.drains += 1
        is_here = self.drains > self.is_late
        self.log.write_text(self.text if is_here else "")
        return is_here


@pytest.mark.parametrize("is_late", [False, True])
def test_what_a_worker_left_behind_is_read_once_and_the_caller_does_not_wait(
    tmp_path: Path, is_late: bool, disk: Disk
) -> None:
    """Output that comes late is waited for again: the record is complete."""
    submitted, done = list[ToRecord](), threading.Event()
    output = Output(
        tmp_path / "stderr.log", "RuntimeError: [gloo/pair.cc:547] Connection closed by peer [::1]:5\n", is_late
    )
    backend = MemoryBackend(MemoryStore(), SystemClock())
    ends = WorkerEnds(ME, "gpu-02", backend, submitted.append, lambda: "13:05:40", output.drain, disk)
    ends.add(attempt(tmp_path, stderr=Sink(output.log)), Exit(1, 1, 1, 0.0, 0.0))
    assert ends.read(1, done.set)
    output.opened.set()
    assert done.wait(TIMEOUT_S)
    assert ends.is_echo(1) is not is_late
    ends.record_failure(Record(1, 1, 0.0))
    record = submitted[0].read()
    assert record
    assert (record.tail, record.when, output.drains) == ((output.text.strip(),), "13:05:40", 2 if is_late else 1)
    ends.close()
    ends.close()


@pytest.mark.parametrize("code", [0, -9, -15])
def test_an_end_that_is_no_echo_whatever_the_log_says_is_not_read(tmp_path: Path, code: int, disk: Disk) -> None:
    backend = MemoryBackend(MemoryStore(), SystemClock())
    ends = WorkerEnds(ME, "gpu-02", backend, lambda item: None, lambda: "", lambda timeout_s: True, disk)
    ends.add(attempt(tmp_path), Exit(1, 1, code, 0.0, 0.0))
    assert not ends.read(1, lambda: None)
    assert not ends.is_echo(1)


def test_an_abort_may_be_an_echo_and_is_read(tmp_path: Path, disk: Disk) -> None:
    """Libraries abort the process when a peer is gone."""
    backend, done = MemoryBackend(MemoryStore(), SystemClock()), threading.Event()
    ends = WorkerEnds(ME, "gpu-02", backend, lambda item: None, lambda: "", lambda timeout_s: True, disk)
    log = tmp_path / "stderr.log"
    log.write_text("RuntimeError: [gloo/pair.cc:547] Connection closed by peer [::1]:5\n")
    ends.add(attempt(tmp_path, stderr=Sink(log)), Exit(1, 1, -signal.SIGABRT, 0.0, 0.0))
    assert ends.read(1, done.set)
    assert done.wait(TIMEOUT_S) and ends.is_echo(1)
    ends.close()


def test_a_failure_that_is_read_late_is_not_told_of_by_the_output_of_the_worker_s_next_start(
    tmp_path: Path, disk: Disk
) -> None:
    log, submitted = tmp_path / "stderr.log", list[ToRecord]()
    backend = MemoryBackend(MemoryStore(), SystemClock())
    ends = WorkerEnds(ME, "gpu-02", backend, submitted.append, lambda: "", lambda timeout_s: True, disk)
    log.write_text("of this start\n")
    ends.add(attempt(tmp_path, stderr=Sink(log, console=False)), Exit(1, 1, 1, 0.0, 0.0))
    ends.record_failure(Record(1, 1, 0.0))
    log.write_text("of this start\nof the next\n")
    assert [fault.tail for each in submitted if (fault := each.read())] == [("of this start",)]


def test_a_report_has_the_failures_of_its_node_that_the_store_does_not_have(tmp_path: Path, disk: Disk) -> None:
    backend = MemoryBackend(MemoryStore(), SystemClock())
    ends = WorkerEnds(ME, "gpu-02", backend, lambda item: None, lambda: "", lambda timeout_s: True, disk)
    known, kept = fault(attempt(tmp_path)), evolve(fault(attempt(tmp_path)), round=3)
    backend.notes.add(FAULTS, known)
    ends.recorded(known)
    assert ends.all_faults() == (known,)
    ends.recorded(kept)
    assert ends.all_faults() == (kept, known)


def test_a_report_completes_a_failure_of_its_node_of_which_the_store_has_the_first_record(
    tmp_path: Path, disk: Disk
) -> None:
    backend = MemoryBackend(MemoryStore(), SystemClock())
    ends = WorkerEnds(ME, "gpu-02", backend, lambda item: None, lambda: "", lambda timeout_s: True, disk)
    ended = fault(attempt(tmp_path))
    raised = evolve(ended, exit_code=None)
    backend.notes.add(FAULTS, raised)
    ends.recorded(raised)
    ends.recorded(ended)
    assert [each.exit_code for each in ends.all_faults()] == [1]


def test_what_a_worker_was_told_before_it_was_started_again_says_nothing_of_its_next_end(
    tmp_path: Path, disk: Disk
) -> None:
    submitted = list[ToRecord]()
    backend = MemoryBackend(MemoryStore(), SystemClock())
    ends = WorkerEnds(ME, "gpu-02", backend, submitted.append, lambda: "", lambda timeout_s: True, disk)
    for is_told in (True, False):
        ends.add_raise(attempt(tmp_path), 1, 8812, Report(What.RAISE, 1.0, 1.0))
        if is_told:
            ends.signalled(signal.SIGTERM, {1})
        ends.add(attempt(tmp_path), Exit(1, 8812, -signal.SIGTERM, 0.0, 2.0))
        ends.record_failure(Record(1, -signal.SIGTERM, 1.0, Origin.RAISE))
        record = submitted.pop().read()
        assert record and record.remark.startswith(STILL_RUNNING) is is_told
        ends.drop(1)


def test_a_program_that_cannot_be_executed_is_charged_to_the_node_s_first_worker() -> None:
    found = unstartable_fault(ME, "gpu-02", 4, RANKS, "2025-01-01 13:05:40", "x: no such file")
    assert (found.rank, found.local_rank, found.pid, found.exit_code) == (2, 0, 0, UNSTARTABLE)
    assert (found.host, found.round, found.message) == ("gpu-02", 4, "x: no such file")
