"""Where status lines go: to a terminal, to a log, or nowhere; and a stderr that is gone."""

from __future__ import annotations

import io
import re
import signal
import sys

import pytest
from attrs import evolve
from narration import FAULT, Story, Terminal, seen
from worlds import arrived, node, register

from elastic.adapters.report.news import Recorded, StoreSilent
from elastic.core.group.state import Signalled


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals of 200 columns."""
    monkeypatch.setenv("COLUMNS", "200")


def test_on_a_terminal_a_wait_is_a_live_line_that_makes_room_for_every_other() -> None:
    """Read as a terminal reads: the text that stands in the end is what was printed for good."""
    story = Story(me=node("gpu-01"), mode="auto", workers=1)
    state = arrived(register("2"), "gpu-01")
    story.sees(state)
    story.lasts(4.0)
    waiting = "elastic  round 0: waiting for 1 of 2 nodes · here: gpu-01 · not yet seen: 1 · 00:04 of 10:00"
    shown = seen(story.out.getvalue())
    assert shown[0] == waiting and shown[1].startswith("         with --nnodes=1:2 it would start")
    assert story.out.getvalue().count("00:03 of 10:00") == 1
    complete = arrived(state, "gpu-02")
    story.sees(complete, 4.5)
    story.starts_in(complete.world, 4.6)
    first, *below = seen(story.out.getvalue())
    assert first == "elastic  round 0: 2 nodes, 2 workers, started in 4.6 s"
    assert not any(below)


def test_a_line_printed_during_a_wait_stands_above_it() -> None:
    story, state = Story(me=node("gpu-01"), mode="auto"), arrived(register("2"), "gpu-01")
    story.sees(state)
    story.lasts(4.0)
    story.status.saw(Recorded(evolve(FAULT, message="killed by SIGKILL", exit_code=-9, log="")))
    story.lasts(5.0)
    first, second, *_ = seen(story.out.getvalue())
    assert first == "elastic  gpu-02 rank 5 (local 1, pid 8812) failed: killed by SIGKILL after 12.4 s"
    assert second.startswith("elastic  round 0: waiting for 1 of 2 nodes") and second.endswith("00:05 of 10:00")


def test_on_a_narrow_terminal_nothing_of_a_live_line_is_lost_and_all_of_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    story, state = Story(me=node("gpu-01"), mode="auto"), arrived(register("2"), "gpu-01")
    story.sees(state)
    story.lasts(4.0)
    shown = seen(story.out.getvalue())
    assert max(map(len, shown)) <= 40
    all_of_it = " ".join(" ".join(shown).split())
    assert "· here: gpu-01 · not yet seen: 1 · 00:04 of 10:00 with --nnodes=1:2 it would start" in all_of_it
    story.happens(Signalled(signal.SIGTERM, story.at(4.5)))
    assert [line for line in seen(story.out.getvalue()) if line] == ["elastic  SIGTERM: leaving, no worker runs"]


def test_a_live_line_leaves_the_program_s_own_stderr_alone() -> None:
    story, before = Story(me=node("gpu-01"), mode="auto"), sys.stderr
    story.sees(arrived(register("2"), "gpu-01"))
    story.lasts(3.0)
    assert sys.stderr is before
    story.happens(Signalled(signal.SIGTERM, story.at(3.5)))


@pytest.mark.parametrize(
    ("mode", "out", "term", "live"),
    [
        ("auto", Terminal(), "xterm", True),
        ("auto", Terminal(), "dumb", False),
        ("auto", io.StringIO(), "xterm", False),
        ("plain", Terminal(), "xterm", False),
        ("live", io.StringIO(), "xterm", True),
        ("live", io.StringIO(), "dumb", False),
    ],
)
def test_the_mode_and_the_terminal_decide_about_a_live_line(mode: str, out: io.StringIO, term: str, live: bool) -> None:
    story = Story(out=out, mode=mode, term=term)
    story.sees(arrived(register("2"), "gpu-02"))
    story.lasts(4.0)
    assert ("\x1b[2K" in out.getvalue()) == live
    assert "waiting for 1 of 2 nodes" in out.getvalue()


def test_in_a_log_file_every_line_that_begins_has_a_clock() -> None:
    story = Story(out=io.StringIO(), mode="auto")
    story.starts(0.0)
    assert re.fullmatch(r"\d\d:\d\d:\d\d elastic  round 0: 1 node, 2 workers, started in 0 ms\n", story.out.getvalue())


ENDS = [(["all well"], True, ""), (["FAILED", "  why"], False, "elastic  FAILED\n  why\n")]
ENDS += [(["gave up: no round began"], False, "elastic  gave up: no round began\n")]


@pytest.mark.parametrize(("lines", "well", "said"), ENDS)
def test_status_off_prints_only_a_failure(lines: list[str], well: bool, said: str) -> None:
    story = Story(mode="off")
    story.starts(0.0)
    story.exits(1, 1, 1.0)
    story.status.saw(Recorded(FAULT))
    story.status.end(lines, well)
    assert story.out.getvalue() == said


def test_status_off_asks_for_no_wakeups() -> None:
    story = Story(mode="off")
    assert story.status.until is None
    story.status.saw(StoreSilent("", story.at(1.0)))
    assert story.status.until is None


class Broken(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class Shut(Terminal):
    def write(self, text: str) -> int:
        raise ValueError("I/O operation on closed file")


class Unplugged(Terminal):
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("mode", ["auto", "plain"])
@pytest.mark.parametrize("out", [Broken, Shut, Unplugged])
def test_the_job_goes_on_without_stderr(out: type[io.StringIO], mode: str) -> None:
    story = Story(out=out(), mode=mode)
    story.lasts(5.0)
    story.starts(5.0)
    story.exits(1, 1, 6.0)
    story.lasts(10.0)
    story.status.end(["FAILED", "  why"], False)
    assert story.status.until is None


def test_the_job_goes_on_when_the_terminal_is_closed_during_a_live_wait() -> None:
    class Closing(Terminal):
        def write(self, text: str) -> int:
            if "00:04" in text:
                raise BrokenPipeError
            return super().write(text)

    story = Story(out=Closing(), mode="auto")
    story.lasts(10.0)
    story.starts(10.0)
    assert "round 0:" not in story.out.getvalue()


@pytest.mark.parametrize(
    ("term", "no_color", "is_coloured"), [("xterm", "", True), ("xterm", "1", False), ("dumb", "", False)]
)
def test_a_terminal_shows_a_failure_in_red_and_a_loss_in_yellow_unless_no_color_is_set(
    term: str, no_color: str, is_coloured: bool
) -> None:
    story = Story(mode="auto", term=term, no_color=no_color)
    story.status.end(["FAILED: 1 failure", "gpu-02 lost"], well=False)
    red, yellow, end = ("\x1b[31m", "\x1b[33m", "\x1b[0m") if is_coloured else ("", "", "")
    assert f"elastic  {red}FAILED{end}: 1 failure\n" in story.out.getvalue()
    assert f"gpu-02 {yellow}lost{end}" in story.out.getvalue()


def test_a_log_has_no_colours() -> None:
    log = io.StringIO()
    Story(log, no_color="").status.end(["FAILED: 1 failure"], well=False)
    assert "\x1b" not in log.getvalue()
