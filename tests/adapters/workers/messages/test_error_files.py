"""Why a worker failed: error file, end of stderr, exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic.adapters.workers.messages.error_files import (
    ErrorFile,
    end_sentence,
    error_data,
    exit_sentence,
    last_exception,
    leave_error_file,
    read_error_file,
    reply,
)
from elastic.core.world import Fault, Node, Origin

CALLSTACK = """Traceback (most recent call last):
  File "/torch/errors/__init__.py", line 367, in wrapper
    return f(*args, **kwargs)
  File "/home/me/train.py", line 88, in step
    raise ValueError("boom")
ValueError: boom
"""


def read(tmp_path: Path, content: object) -> ErrorFile | None:
    path = tmp_path / "error.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_error_file(path)


def test_torchs_record_is_read(tmp_path: Path) -> None:
    extra = {"py_callstack": CALLSTACK, "timestamp": "1700000000"}
    found = read(tmp_path, {"message": {"message": "ValueError: boom", "extraInfo": extra, "errorCode": 1}})
    assert found == ErrorFile("ValueError: boom", "train.py:88 in step", CALLSTACK)


def test_a_message_that_is_plain_text_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, {"message": "no memory", "timestamp": 12}) == ErrorFile("no memory")
    assert read(tmp_path, {"message": "no memory"}) == ErrorFile("no memory")


def test_a_message_that_is_no_text_is_shown_as_json_and_a_long_one_costs_no_callstack(tmp_path: Path) -> None:
    extra = {"py_callstack": CALLSTACK}
    for message, text in (
        ({"code": 5}, '{"code": 5}'),
        (10**30, f"{10**30}"),
        (None, "null"),
        ("a" * 1_500_000, "a" * 1_500_000),
    ):
        found = read(tmp_path, {"message": {"message": message, "extraInfo": extra}})
        assert found == ErrorFile(text, "train.py:88 in step", CALLSTACK)


def test_a_record_without_a_callstack_has_no_place(tmp_path: Path) -> None:
    assert read(tmp_path, {"message": {"message": "a"}}) == ErrorFile("a")
    assert read(tmp_path, {"message": {"message": "a", "extraInfo": {"py_callstack": "none"}}}) == ErrorFile(
        "a", callstack="none"
    )


def test_half_of_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    extra = {"py_callstack": "in \udcff"}
    found = read(tmp_path, {"message": {"message": "ValueError: \ud83d \U0001f600", "extraInfo": extra}})
    assert found == ErrorFile("ValueError: ? \U0001f600", callstack="in ?")


def test_half_of_a_surrogate_pair_reaches_nobody_who_gets_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_text(json.dumps({"message": {"message": "\ud83d", "extraInfo": {"\udcff": ["\udcff \U0001f600"]}}}))
    found = error_data(Fault(Node("n", 1), 0, 0, 0, 1, 1, 0.0, error_file=str(path)))
    assert found == {"message": {"message": "?", "extraInfo": {"?": ["? \U0001f600"]}}}


@pytest.mark.parametrize("timestamp", ["soon", None, [], 10**400])
def test_a_timestamp_may_be_anything(tmp_path: Path, timestamp: object) -> None:
    assert read(tmp_path, {"message": "a", "timestamp": timestamp}) == ErrorFile("a")
    extra = {"py_callstack": "none", "timestamp": timestamp}
    assert read(tmp_path, {"message": {"message": "a", "extraInfo": extra}}) == ErrorFile("a", callstack="none")


def test_without_a_file_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert read_error_file(tmp_path / "error.json") is None


def unreadable(tmp_path: Path, content: object) -> str:
    found = read(tmp_path, content)
    assert found is not None
    start = f"the error file {tmp_path / 'error.json'} is unreadable: "
    assert found.message.startswith(start)
    return found.message.removeprefix(start)


def test_what_cannot_be_read_is_said_with_the_reason(tmp_path: Path) -> None:
    assert unreadable(tmp_path, b" \n") == "empty"
    assert unreadable(tmp_path, b'{"message": {"mess') == "Input data was truncated"
    assert unreadable(tmp_path, {"message": 7}).startswith("Expected `str | object`, got `int`")
    assert unreadable(tmp_path, []) == "Expected `object`, got `array`"
    assert unreadable(tmp_path, {"message": "a" * (1 << 24)}) == "longer than 16777216 bytes"
    assert unreadable(tmp_path, b"[" * 100_000)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, reason in ((tmp_path / "fifo", "not a regular file"), (tmp_path, "Is a directory")):
        assert read_error_file(path) == ErrorFile(f"the error file {path} is unreadable: {reason}")


@settings(max_examples=50)
@given(
    st.binary()
    | st.recursive(
        st.none() | st.text() | st.integers(),
        lambda x: st.dictionaries(st.sampled_from(["message", "extraInfo", "timestamp", "py_callstack"]), x),
    ).map(lambda x: json.dumps(x).encode())
)
def test_garbage_is_never_an_exception(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    assert read_error_file(path) is not None


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b"1" * 5_000])
def test_what_the_job_has_on_record_stands_for_an_error_file_that_cannot_be_read(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "error.json"
    path.write_bytes(content)
    fault = Fault(Node("n", 1), 0, 0, 0, 1, 1, 0.0, message="boom", error_file=str(path))
    assert error_data(fault)["message"]["message"] == "boom"


def test_the_last_exception_of_a_log_is_found() -> None:
    lines = ["start", *CALLSTACK.splitlines(), "warning: leaked semaphore"]
    assert last_exception(lines) == ("ValueError: boom", "train.py:88 in step")


def test_its_head_may_be_cut_off_and_torchs_margin_stand_before_it() -> None:
    lines = [f"[rank3]: {line}" for line in CALLSTACK.splitlines()[3:]]
    assert last_exception(lines) == ("ValueError: boom", "train.py:88 in step")


def test_of_a_chain_the_last_exception_counts() -> None:
    other = CALLSTACK.replace("boom", "first").replace("88", "12")
    lines = [*other.splitlines(), "", "During handling of …, another exception occurred:", "", *CALLSTACK.splitlines()]
    assert last_exception(lines) == ("ValueError: boom", "train.py:88 in step")


def test_a_log_without_an_exception_has_none() -> None:
    assert last_exception([]) == last_exception(["hello", 'File "x", line 3']) == ("", "")


def test_an_exception_that_was_cut_off_has_its_place() -> None:
    assert last_exception(CALLSTACK.splitlines()[:5]) == ("", "train.py:88 in step")


@pytest.mark.parametrize(
    ("program", "message", "where"),
    [
        ("def f():\n  1/0\nf()", "ZeroDivisionError: division by zero", "<string>:2 in f"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded", "<string>:1 in f"),
        ("x = (", "SyntaxError: '(' was never closed", "<string>:1"),
        (
            "raise ExceptionGroup('g', [ValueError('a')])",
            "ExceptionGroup: g (1 sub-exception)",
            "<string>:1 in <module>",
        ),
        ("assert False, 'two\\nlines'", "AssertionError: two", "<string>:1 in <module>"),
    ],
)
def test_what_python_prints_is_understood(program: str, message: str, where: str) -> None:
    run = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=False)
    assert last_exception(run.stderr.splitlines()) == (message, where)


def test_an_exit_code_is_said_in_words() -> None:
    assert [exit_sentence(code) for code in (0, 1, 137, -9, -11)] == [
        "exit code 0",
        "exit code 1",
        "exit code 137",
        "killed by SIGKILL",
        "killed by SIGSEGV",
    ]


def test_signals_without_a_name_have_their_number() -> None:
    assert [exit_sentence(-signum) for signum in (34, 35, 63, 64, 32, 99)] == [
        "killed by SIGRTMIN",
        "killed by SIGRTMIN+1",
        "killed by SIGRTMIN+29",
        "killed by SIGRTMAX",
        "killed by signal 32",
        "killed by signal 99",
    ]


@pytest.mark.parametrize(
    ("origin", "code", "known", "said"),
    [
        (Origin.RAISE, None, 1, "uncaught exception"),
        (Origin.RAISE, 1, 1, "exit code 1"),
        (Origin.RAISE, -15, 1, "uncaught exception, then killed by SIGTERM"),
        (Origin.RAISE, 3, 3, "uncaught exception, then exit code 3"),
        (Origin.END, -15, -15, "killed by SIGTERM"),
        (Origin.ENDING, 7, 7, "ended by itself, exit code 7"),
    ],
)
def test_the_exit_code_of_an_exception_is_pythons_whatever_signal_ended_the_process_then(
    origin: Origin, code: int | None, known: int, said: str
) -> None:
    fault = Fault(Node("n", 1), 0, 3, 1, 8812, code, 2.5, 4, "gpu-02", "", "ValueError: boom", origin=origin)
    assert (reply(fault)["message"]["errorCode"], end_sentence(fault)) == (known, said)


def test_a_worker_that_elastic_ends_after_its_exception_failed_by_that() -> None:
    late = "still running 2 s after its exception, told to end"
    fault = Fault(Node("n", 1), 0, 3, 1, 1, -15, 2.5, 4, "gpu", "", "x", remark=late, origin=Origin.RAISE)
    assert end_sentence(fault) == "uncaught exception"


def test_the_error_file_that_came_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    leave_error_file(path, "killed by its monitor", "callstack")
    first = path.read_bytes()
    leave_error_file(path, "ended")
    assert path.read_bytes() == first
    read = read_error_file(path)
    assert read is not None and (read.message, read.callstack) == ("killed by its monitor", "callstack")
    leave_error_file(tmp_path / "nowhere" / "error.json", "ended")
    leave_error_file(None, "ended")
