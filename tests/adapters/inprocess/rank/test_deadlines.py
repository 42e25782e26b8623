"""What the log says when a deadline passes: whose, which parameter moves it, and where the user's code stood."""

from __future__ import annotations

import re
import time

import pytest
from attrs import fields
from spans import Stage, stage

from elastic.adapters.inprocess.gate.bytecode_progress import Progress
from elastic.adapters.inprocess.rank.deadlines import CONSEQUENCES, Late, sentence
from elastic.adapters.inprocess.shared_page import ARMED, NS, SOFT, STAMP, WANT
from elastic.adapters.inprocess.thread_events import SpanEnd
from elastic.core.inprocess.settings import Settings
from elastic.core.inprocess.words import Deadline, Span, Timer

LONG_S = 1_000


def hangs() -> None:
    time.sleep(LONG_S)


def beside(on: Stage, deadline: Deadline | None) -> tuple[Late, SpanEnd]:
    """A function that hangs is called back; the driver logs the deadline before that, if there is one."""
    late = Late("3", on.gate, on.page)

    def stands() -> bool:
        if not on.gate.stack():
            return False
        if deadline and (tell := late.passed(deadline, Span.FUNCTION, 7)):
            tell()
        return True

    return late, on.ended(hangs, begun=stands)


def test_where_a_hanging_function_stands_is_told_without_the_wrapper_s_own_frames(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with stage() as on:
        beside(on, Deadline(Timer.UNWIND, 1, 30.0))
    (line, file, code) = caplog.messages[0].splitlines()
    text = "function did not end within 30 s of being called back (unwind_timeout): the process is killed, at"
    assert line == f"rank 3, iteration 7: {text}"
    assert file.endswith(", in hangs") and __file__ in file
    assert code.strip() == "time.sleep(LONG_S)"


def test_where_code_stood_that_nobody_could_look_at_is_told_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    with stage() as on:
        late, ended = beside(on, None)
        late.called_back(ended, Span.FUNCTION, 7)
        assert caplog.messages == []  # somebody else's fault: it did not hang
        late.passed(Deadline(Timer.SOFT, ended.token, 2.0), Span.FUNCTION, 7)
        late.called_back(ended, Span.FUNCTION, 7)
    (told,) = caplog.messages
    assert told.startswith("rank 3, iteration 7: function was called back, at\n")
    assert told.endswith("time.sleep(LONG_S)") and "gate.py" not in told


@pytest.mark.parametrize(
    ("timer", "told"),
    [
        (Timer.SOFT, "made no progress for 2 s (soft_timeout): the iteration ends, at"),
        (Timer.HARD, "made no progress for 2 s (hard_timeout): the process is killed, at"),
        (Timer.UNWIND, "did not end within 2 s of being called back (unwind_timeout): the process is killed, at"),
    ],
)
def test_a_span_that_has_not_begun_is_not_blamed_for_what_keeps_the_main_thread(
    timer: Timer, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    def destroys() -> None:
        if tell := late.passed(Deadline(timer, on.order(hangs).token, 2.0), Span.INITIALIZE, 7):
            tell()

    with stage() as on:
        late = Late("3", on.gate, on.page)
        on.run(lambda: on.gate.limit(5, 9))
        destroys()
    line, *stack = caplog.messages[0].splitlines()
    assert line == f"rank 3, iteration 7: the clean-up before initialize {told}"
    assert any(each.endswith(", in destroys") for each in stack)


KEPT = "function made no progress for 0.001 s and kept the interpreter: its monitor called it back, at"
AFTER = "function was called back after 0.001 s without progress, at"


@pytest.mark.parametrize(
    ("soft_s", "by_monitor", "told"), [(0.001, True, [KEPT]), (0.001, False, [AFTER]), (LONG_S, True, [])]
)
def test_where_code_hung_that_kept_the_interpreter_is_told_whoever_called_it_back(
    soft_s: float, by_monitor: bool, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The monitor ends the round of code that keeps the interpreter. The driver may hear of that before the code is back."""

    def hangs_under_a_limit() -> None:
        on.page.words[SOFT] = int(soft_s * NS)
        hangs()

    def stands() -> bool:
        limit = on.page.words[SOFT]
        return bool(limit) and (soft_s == LONG_S or time.monotonic_ns() > on.page.words[STAMP] + limit)

    with stage() as on:
        late = Late("3", on.gate, on.page)
        ended = on.ended(hangs_under_a_limit, begun=stands)
        if by_monitor:
            on.page.words[WANT] = 0
        late.called_back(ended, Span.FUNCTION, 7)
    assert [each.splitlines()[0] for each in caplog.messages] == [f"rank 3, iteration 7: {each}" for each in told]


@pytest.mark.parametrize(("stood_s", "told"), [(61, [AFTER.replace("0.001", "60")]), (0, [])])
def test_code_that_hung_and_gets_on_just_before_it_is_called_back_hung(
    stood_s: float, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The interpreter may make the call that stamps the page before it handles the signal."""
    gone_on: list[bool] = []

    def hangs_and_gets_on() -> None:
        words = on.page.words
        words[SOFT] = 60 * NS
        words[STAMP] -= int(stood_s * NS)
        Progress(on.page).gets_on(words[ARMED])
        gone_on.append(True)
        hangs()

    with stage() as on:
        late = Late("3", on.gate, on.page)
        ended = on.ended(hangs_and_gets_on, begun=lambda: bool(gone_on))
        late.called_back(ended, Span.FUNCTION, 7)
    assert [each.splitlines()[0] for each in caplog.messages] == [f"rank 3, iteration 7: {each}" for each in told]


def test_a_hang_is_missed_until_its_own_soft_timeout_passes_whatever_else_does() -> None:
    def hangs_under_a_limit() -> None:
        on.page.words[SOFT] = 1
        hangs()

    with stage() as on:
        late = Late("3", on.gate, on.page)
        ended = on.ended(hangs_under_a_limit, begun=lambda: on.page.words[SOFT] == 1)
        for timer, is_missed in ((Timer.UNWIND, True), (Timer.HARD, True), (Timer.SOFT, False)):
            late.passed(Deadline(timer, ended.token, 2.0), Span.FUNCTION, 7)
            assert late.has_missed(ended.token) is is_missed


def test_each_sentence_names_a_parameter_of_the_wrapper() -> None:
    parameters = {each.name for each in fields(Settings)}
    for timer in CONSEQUENCES:
        told = sentence(Deadline(timer, 1, 2.5), "finalize", int(2.5 * NS))
        (name,) = re.findall(r"\((\w+)\)", told)
        assert "2.5 s" in told and name in parameters


@pytest.mark.parametrize(("limit_s", "told"), [(2.0, "2 s (soft_timeout)"), (180.0, "180 s (a limit of its own)")])
def test_a_section_s_limit_is_not_called_the_parameter_s(limit_s: float, told: str) -> None:
    assert told in sentence(Deadline(Timer.SOFT, 1, 2.0), "function", int(limit_s * NS))


def test_what_is_nobody_s_failure_is_not_told() -> None:
    assert [sentence(Deadline(timer, 1, 1.0), "", 0) for timer in (Timer.AGAIN, Timer.STEADY, Timer.LEAVE)] == [""] * 3
