"""A disk may stand still: each file that the launcher makes or removes is on this list, with what bounds the wait for it."""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from processes import comes_true

from elastic.adapters.disk import Disk, Patience, StandsStill, once

ROOT = Path(__file__).parents[2]
CALLS = {
    "open",
    "mkdir",
    "makedirs",
    "mkfifo",
    "rmdir",
    "unlink",
    "replace",
    "rename",
    "write_text",
    "mkdtemp",
    "symlink",
}
OF_THE_WORKERS = ("adapters/inprocess/", "adapters/workers/startup/")
"""These run in the workers' processes."""
DISK = "a Disk bounds the wait"
THREAD = "a separate thread, which is waited for within a time"
TEMPORARY = "beside the relay's socket, among the temporary files of this host"
WORKER = "a worker's process calls it"
COMMAND = "a command that does nothing else"
NO_FILE = "a pipe, a terminal, or a file of /dev or /proc"
WAITS = {
    "adapters/report/launch_report.py:write_whole": DISK,
    "adapters/report/stack_records.py:_write": DISK,
    "adapters/report/stack_records.py:write": DISK,
    "adapters/report/trace_file.py:_Parts.__init__": DISK,
    "adapters/report/trace_file.py:_Parts.go_on": THREAD,
    "adapters/report/trace_file.py:_place": DISK,
    "adapters/store/relay/relay_server.py:Relay.__init__": TEMPORARY,
    "adapters/store/relay/relay_server.py:Relay._listen": TEMPORARY,
    "adapters/store/relay/relay_server.py:Relay._remove": TEMPORARY,
    "adapters/store/secret.py:_held": "read once, before anything is started",
    "adapters/workers/child_processes.py:SubprocessWorkers._outlet": DISK,
    "adapters/workers/output/console.py:Console._opened": NO_FILE,
    "adapters/workers/messages/entered.py:Entered.close": TEMPORARY,
    "adapters/workers/messages/entered.py:say_entered": WORKER,
    "adapters/workers/messages/error_files.py:_error_bytes": DISK,
    "adapters/workers/messages/error_files.py:leave_error_file": DISK + ", or " + THREAD,
    "adapters/workers/messages/file_timers.py:FileTimers.close": NO_FILE,
    "adapters/workers/messages/file_timers.py:_made": NO_FILE,
    "adapters/workers/start/function.py:_leave": WORKER,
    "adapters/workers/start/function_call.py:_calling": "among the temporary files of this host, before anything is started",
    "adapters/workers/output/logs.py:RunDirectory.attempt": DISK,
    "adapters/workers/output/logs.py:RunDirectory.remove_if_unused": DISK,
    "adapters/workers/output/logs.py:_end_of": DISK,
    "adapters/workers/output/logs.py:_make_new": DISK,
    "adapters/workers/output/logs.py:make_run_directory": DISK,
    "adapters/workers/watch/oom_score.py:Protection._set": NO_FILE,
    "adapters/workers/messages/notices.py:NoticeBoard.close": TEMPORARY,
    "adapters/workers/messages/notices.py:NoticeBoard.tell": TEMPORARY,
    "adapters/workers/messages/notices.py:ready_to_leave": WORKER,
    "adapters/workers/messages/progress.py:_mapped": WORKER,
    "adapters/workers/messages/pages.py:_read": TEMPORARY,
    "adapters/workers/messages/pages.py:put_before": TEMPORARY,
    "adapters/workers/messages/pages.py:take_page": TEMPORARY,
    "adapters/workers/output/pump.py:LogPump._appended": DISK,
    "adapters/workers/watch/py_spy.py:_started": NO_FILE,
    "adapters/workers/start/run_path.py:record": WORKER,
    "adapters/workers/watch/stacks.py:_opened": NO_FILE,
    "cli/launch.py:_stderr": NO_FILE,
    "cli/option.py:Helpful.format_epilog": "no file: the text of a help",
    "cli/option.py:_Formatter.write_text": "no file: the text of a help",
    "cli/main.py:_fill_standard_streams": NO_FILE,
    "cli/main.py:_let_go": NO_FILE,
    "cli/simulate.py:_write": COMMAND,
    "cli/traces.py:draw": COMMAND,
}


def makes(node: ast.Call) -> bool:
    """Return True if this call makes, opens for writing, or removes a file by its path."""
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    text = ast.unparse(node)
    if name == "open":
        return "os.open(" in text or any(
            isinstance(each, ast.Constant) and each.value in ("w", "x", "a", "wb", "xb", "ab") for each in node.args
        )
    return name in CALLS and (name != "replace" or text.startswith("os.replace"))


def makers(tree: ast.AST, within: str = "") -> Iterator[str]:
    """The functions that do so."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from makers(node, f"{within}.{node.name}" if within else node.name)
        else:
            if isinstance(node, ast.Call) and makes(node):
                yield within
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.open":
                yield within
            yield from makers(node, within)


def test_each_file_that_is_made_is_made_where_the_disk_may_stand_still() -> None:
    found = {
        f"{file.relative_to(ROOT)}:{within}"
        for room in ("adapters", "cli")
        for file in (ROOT / room).rglob("*.py")
        if not str(file.relative_to(ROOT)).startswith(OF_THE_WORKERS)
        for within in makers(ast.parse(file.read_text()))
    }
    assert found == WAITS.keys(), f"say here what bounds the wait: {sorted(found ^ WAITS.keys())}"


def test_who_waits_for_a_disk_that_stands_still_is_told_and_the_next_one_at_once() -> None:
    disk, answers, late = Disk(), threading.Event(), list[str]()

    def made() -> str:
        answers.wait()
        return "made"

    with pytest.raises(StandsStill, match="has not answered for 0 s"):
        disk.do(made, late.append, patience_s=0.01)
    with pytest.raises(StandsStill):
        disk.do(lambda: "never asked", patience_s=3_600.0)
    disk.later(lambda: late.append("later"))
    answers.set()
    assert comes_true(lambda: late == ["made", "later"])
    assert disk.do(lambda: "again") == "again"
    with pytest.raises(FileNotFoundError):
        disk.do(lambda: Path("/no/such").read_text())
    disk.close()
    disk.close()
    assert disk.do(lambda: "after all") == "after all"
    disk.close()


def test_an_error_of_any_kind_reaches_the_caller_and_the_disk_goes_on() -> None:
    disk = Disk()
    with pytest.raises(SystemExit):
        disk.do(lambda: sys.exit(3))
    assert disk.do(lambda: "goes on") == "goes on"
    disk.close()


def test_a_late_call_that_fails_leaves_the_disk_going_on() -> None:
    disk, answers = Disk(), threading.Event()
    with pytest.raises(StandsStill):
        disk.do(answers.wait, lambda made: os.close(-1), patience_s=0.01)
    disk.later(lambda: os.close(-1))
    answers.set()
    assert comes_true(lambda: answer(disk) == "goes on")
    disk.close()


def answer(disk: Disk) -> str:
    try:
        return disk.do(lambda: "goes on")
    except StandsStill:
        return "stands still"


def test_each_call_is_answered_though_another_thread_closes_the_disk_again_and_again() -> None:
    disk, ended = Disk(), threading.Event()

    def close() -> None:
        while not ended.is_set():
            disk.close()

    closer = threading.Thread(target=close)
    closer.start()
    try:
        assert [disk.do(partial(int, number), patience_s=60.0) for number in range(300)] == list(range(300))
    finally:
        ended.set()
        closer.join()
    disk.close()


def test_a_disk_of_one_call_leaves_no_thread() -> None:
    ran_in = once(threading.current_thread)
    assert ran_in is not threading.current_thread() and not ran_in.is_alive()


def test_a_disk_that_stands_still_is_not_waited_for_at_its_close() -> None:
    disk, answers = Disk(), threading.Event()
    with pytest.raises(StandsStill):
        disk.do(answers.wait, patience_s=0.01)
    disk.close(patience_s=3_600.0)
    answers.set()


def test_waits_share_one_span_of_which_nothing_else_takes_and_each_has_a_second_at_least() -> None:
    now = [7.0]

    def wait(left_s: float) -> float:
        now[0] += 3.0
        return left_s

    patience = Patience(5.0, clock=lambda: now[0])
    assert patience.spend(wait) == 5.0
    now[0] += 1_000.0
    assert patience.spend(wait) == 2.0
    assert patience.spend(wait) == 1.0
