"""A destination that others share: nothing waits for it, and what it takes late it takes whole."""

from __future__ import annotations

import os
import pty
import socket
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import frozen

from elastic.adapters.workers.output import console as module
from elastic.adapters.workers.output.console import Console, identity


@frozen
class End:
    """Where a console writes, and how a reader takes what there is."""

    write: int
    read: int

    def taken(self) -> bytes:
        os.set_blocking(self.read, False)
        data = b""
        try:
            while chunk := os.read(self.read, 65_536):
                data += chunk
        except BlockingIOError:
            pass
        return data


def a_pipe() -> End:
    read, write = os.pipe()
    return End(write, read)


def a_socket() -> End:
    here, there = socket.socketpair()
    return End(here.detach(), there.detach())


def a_terminal() -> End:
    read, write = pty.openpty()
    tty.setraw(write)
    return End(write, read)


@pytest.fixture(params=[a_pipe, a_socket, a_terminal])
def end(request: pytest.FixtureRequest) -> Iterator[End]:
    made: End = request.param()
    yield made
    os.close(made.write)
    os.close(made.read)


LINES = b"".join(b"%06d %s\n" % (number, b"." * (number % 200)) for number in range(20_000))


def test_what_is_not_taken_at_once_is_kept_and_taken_later_in_order(end: End) -> None:
    console = Console(end.write)
    console.put(LINES)
    assert console.pending > 0
    data = b""
    while console.pending:
        data += end.taken()
        console.wait(0.1)
        console.flush()
    assert data + end.taken() == LINES
    assert os.get_blocking(end.write)
    console.close()
    console.close()


def test_one_that_may_not_be_opened_again_is_not_waited_for_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's terminal, after su. Root may open any, so here the opening fails for another reason."""
    monkeypatch.setattr(module, "AGAIN", "/nowhere/{}")
    test_what_is_not_taken_at_once_is_kept_and_taken_later_in_order(end := a_pipe())
    os.close(end.write)
    os.close(end.read)


def test_lines_stay_whole_between_those_of_others() -> None:
    end = a_pipe()
    console = Console(end.write)
    console.put(LINES)
    data = b""
    while console.pending:
        data += os.read(end.read, 8192)
        os.write(end.write, b"somebody else\n")
        console.flush()
    data += end.taken()
    assert [line for line in data.splitlines() if line != b"somebody else"] == LINES.splitlines()
    console.close()


@pytest.mark.parametrize("make", [a_pipe, a_socket, a_terminal])
def test_one_that_nobody_can_read_any_more_takes_all_and_shows_nothing(make: Callable[[], End]) -> None:
    end = make()
    console = Console(end.write)
    console.put(LINES)
    os.close(end.read)
    console.flush()
    assert console.pending == 0
    console.put(b"more\n")
    assert console.pending == 0
    console.close()
    os.close(end.write)


def test_a_file_takes_everything_where_the_others_who_share_it_have_left_it(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"first\n")
    console = Console(descriptor)
    console.put(LINES)
    os.write(descriptor, b"last\n")
    assert (tmp_path / "out").read_bytes() == b"first\n" + LINES + b"last\n"
    console.close()
    os.close(descriptor)


def test_two_descriptors_of_one_place_are_known_as_such(tmp_path: Path) -> None:
    end, other = a_pipe(), a_pipe()
    same = os.dup(end.write)
    assert identity(end.write) == identity(same) != identity(other.write)
    for descriptor in (same, end.read, end.write, other.read, other.write):
        os.close(descriptor)
