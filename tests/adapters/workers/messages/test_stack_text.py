"""Python's text of its stacks: what is read from it, and the one line that people are told."""

from __future__ import annotations

import faulthandler
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.adapters.workers.messages.stack_text import (
    FRAMES_MAX,
    THREADS_MAX,
    Frame,
    as_traceback,
    main_thread,
    place,
    threads,
)

SITE = "/opt/lib/python3.11/site-packages"
TEXT = f"""\
Thread 0x00007f0d3c7ff640 (most recent call first):
  File "/opt/lib/python3.11/threading.py", line 320 in wait
  File "/opt/lib/python3.11/threading.py", line 975 in run

Current thread 0x00007f0d5c7ff640 (most recent call first):
  Garbage-collecting
  File "{SITE}/torch/distributed/distributed_c10d.py", line 2810 in all_reduce
  File "{SITE}/torch/distributed/c10d_logger.py", line 81 in wrapper
  File "/home/me/train.py", line 120 in step
  File "/home/me/train.py", line 200 in <module>
"""
HEAD = "Thread 0x00007f0d3c7ff640 (most recent call first):\n"


def test_the_main_thread_stands_last_and_its_place_is_the_innermost_call_and_the_user_s_own_line() -> None:
    waiting, main = threads(TEXT)
    assert [frame.function for frame in waiting.frames] == ["wait", "run"]
    assert main == main_thread(TEXT) and main.is_current
    assert place(main.frames) == "in all_reduce (train.py:120 in step)"


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        ([], "outside Python"),
        ([Frame("/home/me/train.py", "12", "odd")], "at train.py:12 in odd"),
        ([Frame("/usr/lib/python3.11/socket.py", "7", "recv")], "at socket.py:7 in recv"),
        ([Frame("<frozen runpy>", "88", "_run_code"), Frame("a/b.py", "1", "f")], "in _run_code (b.py:1 in f)"),
        ([Frame("/usr/lib/python3/dist-packages/x.py", "3", "g"), Frame("m.py", "???", "f")], "in g (m.py:??? in f)"),
    ],
)
def test_a_place_is_one_line(frames: list[Frame], told: str) -> None:
    assert place(frames) == told


def test_of_a_text_that_was_cut_short_the_thread_that_wrote_it_counts() -> None:
    assert main_thread(TEXT + "\n" + HEAD + '  File "x.py", line 1 in other\n\n...\n').is_current
    assert place(main_thread(TEXT + "\n" + HEAD + '  File "x.py", line 1 in main\n').frames) == "at x.py:1 in main"
    assert main_thread("").frames == ()


def test_the_text_of_this_python_is_understood(tmp_path: Path) -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with (tmp_path / "stacks").open("w+") as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            text = file.read()
    finally:
        over.set()
        other.join()
    assert "wait" in [frame.function for frame in threads(text)[0].frames]
    assert place(main_thread(text).frames).startswith("at test_stack_text.py:")


pieces = st.sampled_from(
    [
        *TEXT.splitlines(),
        "...",
        '  File "", line 1 in ',
        '  File "a", line 2 in b", line 3 in c',
        "\x1b]0;\x07",
        "\u202e",
    ]
) | st.text(max_size=300)


@given(st.lists(pieces, max_size=40).map("\n".join))
def test_whatever_stands_in_the_text_the_line_is_printable_and_bounded(text: str) -> None:
    found = threads(text)
    assert len(found) <= THREADS_MAX and all(len(thread.frames) <= FRAMES_MAX for thread in found)
    for thread in (*found, main_thread(text)):
        told = place(thread.frames)
        assert told.isprintable() and 0 < len(told) < 400


def test_a_long_text_is_read_up_to_its_bounds() -> None:
    many = HEAD + '  File "x.py", line 1 in f\n' * (2 * FRAMES_MAX)
    assert [len(thread.frames) for thread in threads(many * (2 * THREADS_MAX))] == [FRAMES_MAX] * THREADS_MAX
    assert len(place([Frame("/" + "d" * 5_000, "1", "\x07" * 5_000)])) < 300


def test_as_a_traceback_the_innermost_call_stands_last_and_every_frame_is_one_line() -> None:
    told = as_traceback([Frame("a.py", "2", "inner"), Frame("b\n.py", "1", "outer\x1b")])
    assert told == '  File "b\\n.py", line 1, in outer\\x1b\n  File "a.py", line 2, in inner\n'


def test_a_thread_that_writes_alone_is_the_main_one() -> None:
    text = (
        'Stack (most recent call first):\n  File "/a/train.py", line 3 in step\n  File "/a/t.py", line 9 in <module>\n'
    )
    assert place(main_thread(text).frames) == "at train.py:3 in step"
