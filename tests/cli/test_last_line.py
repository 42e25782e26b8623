"""A wait as people see it: the lines of a log, and the live lines of a terminal."""

from __future__ import annotations

import io

import pytest
from attrs import evolve

from elastic.cli.render.last_line import AGAIN_S, LiveLastLine, PlainLastLine, Wait

WAIT = Wait("nodes", 1, "waiting for 1 node")


class Log:
    """A plain last line, and what it printed."""

    def __init__(self) -> None:
        self.said: list[tuple[str, ...]] = []
        self.line = PlainLastLine(lambda *lines: self.said.append(lines))


def test_a_log_shows_a_wait_when_it_begins_and_then_each_minute() -> None:
    log = Log()
    for second in range(1 + int(AGAIN_S) * 3):
        log.line.show(evolve(WAIT, text=f"after {second} s"), float(second))
    assert log.said == [("after 0 s",), ("after 60 s",), ("after 120 s",), ("after 180 s",)]


def test_a_log_shows_a_wait_again_when_its_detail_or_its_subject_changes() -> None:
    log = Log()
    for now, wait in enumerate([WAIT, WAIT, evolve(WAIT, detail=2), evolve(WAIT, detail=2), evolve(WAIT, about="x")]):
        log.line.show(evolve(wait, text=str(now)), float(now))
    assert log.said == [("0",), ("2",), ("4",)]


def test_a_wait_that_begins_again_is_shown_again() -> None:
    log = Log()
    log.line.show(WAIT, 0.0)
    log.line.make_room()
    log.line.show(WAIT, 1.0)
    log.line.clear()
    log.line.show(WAIT, 2.0)
    assert len(log.said) == 2


def test_advice_is_given_once_in_a_wait_even_if_it_comes_late() -> None:
    log, advised = Log(), evolve(WAIT, advice=("  do this",))
    log.line.show(WAIT, 0.0)
    log.line.show(evolve(advised, detail=2), 1.0)
    log.line.show(evolve(advised, detail=3), 2.0)
    log.line.show(evolve(advised, detail=3), 200.0)
    log.line.show(evolve(advised, about="store"), 201.0)
    assert ["  do this" in lines for lines in log.said] == [False, True, False, False, True]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    return io.StringIO()


def test_a_live_line_is_rewritten_in_place_and_leaves_nothing(terminal: io.StringIO) -> None:
    line = LiveLastLine(terminal)
    line.show(WAIT, 0.0)
    assert terminal.getvalue().endswith("elastic  waiting for 1 node")
    line.show(evolve(WAIT, text="waiting for nobody"), 1.0)
    assert terminal.getvalue().endswith("node\r\x1b[2Kelastic  waiting for nobody")
    assert "\n" not in terminal.getvalue()
    line.clear()
    assert terminal.getvalue().endswith("\n\x1b[?25h\r\x1b[1A\x1b[2K")


def test_a_live_line_makes_room_once_and_comes_back_when_it_is_shown_again(terminal: io.StringIO) -> None:
    line = LiveLastLine(terminal)
    line.make_room()
    line.clear()
    assert terminal.getvalue() == ""
    line.show(WAIT, 0.0)
    line.make_room()
    length = len(terminal.getvalue())
    line.make_room()
    line.clear()
    assert len(terminal.getvalue()) == length
    line.show(WAIT, 1.0)
    assert terminal.getvalue()[length:].endswith("elastic  waiting for 1 node")


def test_advice_stands_below_a_live_line_for_as_long_as_it_lasts(terminal: io.StringIO) -> None:
    line = LiveLastLine(terminal)
    for now in range(3):
        line.show(evolve(WAIT, advice=("         do this",)), float(now))
    assert terminal.getvalue().count("elastic  waiting for 1 node\n         do this") == 3


def test_each_rewriting_is_one_write(terminal: io.StringIO) -> None:
    class Counting(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    out = Counting()
    line = LiveLastLine(out)
    line.show(WAIT, 0.0)
    line.show(WAIT, 1.0)
    line.clear()
    assert out.writes == 3


def test_markup_in_a_live_line_is_shown_as_text(terminal: io.StringIO) -> None:
    """Square brackets are rich's markup; a host's name is not."""
    LiveLastLine(terminal).show(evolve(WAIT, text="here: [bold]a[/bold] :smile: http://x"), 0.0)
    assert "here: [bold]a[/bold] :smile: http://x" in terminal.getvalue()
