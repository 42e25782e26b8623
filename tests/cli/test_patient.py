"""Standard error without a reader: the text is kept for a while, and nothing waits for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TextIO

import pytest
from attrs import frozen
from processes import comes_true

from elastic.cli.render.patient import KEPT_MAX, PatientText


@frozen
class Pipe:
    out: TextIO
    read: int

    def fill(self) -> int:
        os.set_blocking(self.out.fileno(), False)
        held = 0
        try:
            while True:
                held += os.write(self.out.fileno(), b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(self.out.fileno(), True)
        return held

    def take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += os.read(self.read, size - len(data))
        return data


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as out:
        yield Pipe(out, read)
    os.close(read)


def test_text_arrives_at_once_where_there_is_a_reader(pipe: Pipe) -> None:
    text = PatientText(pipe.out)
    text.write("näher\n")
    assert pipe.take(7) == "näher\n".encode()
    assert not text.isatty()
    text.close(0.0)


def test_text_without_a_reader_is_kept_and_arrives_in_order(pipe: Pipe) -> None:
    held, text = pipe.fill(), PatientText(pipe.out)
    for number in range(10):
        text.write(f"{number}\n")
    assert pipe.take(held + 20)[held:].split() == [str(number).encode() for number in range(10)]
    text.close(5.0)


def test_the_kept_text_and_the_wait_at_the_end_are_bounded(pipe: Pipe) -> None:
    held, text = pipe.fill(), PatientText(pipe.out)
    line = "y" * 1023 + "\n"
    for _ in range(2 * KEPT_MAX // 1024):
        text.write(line)
    text.close(0.01)
    assert pipe.take(held + KEPT_MAX)[held:] == line.encode() * (KEPT_MAX // 1024)
    os.set_blocking(pipe.read, False)
    assert comes_true(lambda: text._carried is False)
    with pytest.raises(BlockingIOError):
        os.read(pipe.read, 1)
    text.close(0.0)


def test_the_end_waits_for_a_slow_reader(pipe: Pipe) -> None:
    held, text = pipe.fill(), PatientText(pipe.out)
    text.write("last\n")
    assert pipe.take(held) == b"x" * held
    text.close(5.0)
    assert pipe.take(5) == b"last\n"
