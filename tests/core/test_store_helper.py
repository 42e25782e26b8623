"""The helper of a store: when its agent starts it, looks at it, kills it, and gives up."""

from __future__ import annotations

from functools import reduce

import pytest

from elastic.core.store_helper import (
    FIRST_STARTS_MAX,
    LONGEST_PAUSE_S,
    LOOKS,
    START_LOOKS,
    STARTS_MAX,
    Answered,
    Command,
    Ended,
    Event,
    Helper,
    Passed,
    Started,
    Stirred,
    transition,
)

STILL_S = 8.0
"""One second for each look."""
NEW = Helper(STILL_S, 0.0)


def after(helper: Helper, *events: Event) -> Helper:
    return reduce(lambda known, event: transition(known, event)[0], events, helper)


def commands(helper: Helper, *events: Event) -> list[Command | None]:
    told = []
    for event in events:
        helper, command = transition(helper, event)
        told.append(command)
    return told


def looks(first: int, number: int) -> list[Event]:
    return [Passed(float(at)) for at in range(first, first + number)]


SERVES = after(NEW, Passed(0.0), Answered(0.5))


def test_the_first_look_is_at_once_and_the_others_after_a_part_of_the_span() -> None:
    assert commands(NEW, *looks(0, 2)) == [Command.LOOK] * 2
    assert commands(NEW, Passed(0.0), Passed(0.9), Passed(1.0)) == [Command.LOOK, None, Command.LOOK]


def test_a_helper_that_answers_nothing_for_the_span_is_killed() -> None:
    assert commands(SERVES, *looks(1, LOOKS + 1)) == [*[Command.LOOK] * LOOKS, Command.KILL]


def test_one_answer_begins_the_span_anew() -> None:
    span = [Command.LOOK] * LOOKS
    told = commands(SERVES, *looks(1, LOOKS), Answered(8.9), *looks(9, LOOKS + 1))
    assert told == [*span, None, *span, Command.KILL]


def test_an_agent_that_stood_still_kills_no_helper_for_it() -> None:
    """Both stood still; the helper answers when it has run again for a moment."""
    assert commands(SERVES, Passed(1.0), Passed(10_000.0), Answered(10_000.1), Passed(10_001.0)) == [
        Command.LOOK,
        Command.LOOK,
        None,
        Command.LOOK,
    ]


def test_a_helper_that_starts_has_as_long_as_it_uses_cpu_time() -> None:
    helper = NEW
    for at in range(10 * START_LOOKS):
        helper, command = transition(after(helper, Stirred()), Passed(float(at)))
        assert command is Command.LOOK


def test_a_helper_that_starts_and_stands_still_is_killed_after_a_longer_span() -> None:
    assert commands(NEW, *looks(0, START_LOOKS + 1)) == [*[Command.LOOK] * START_LOOKS, Command.KILL]


def test_cpu_time_is_no_answer_of_a_helper_that_has_answered() -> None:
    busy = [event for look in looks(1, LOOKS + 1) for event in (Stirred(), look)]
    assert commands(SERVES, *busy)[-1] is Command.KILL


def test_a_helper_that_is_killed_and_lives_on_is_killed_again() -> None:
    told = commands(SERVES, *looks(1, 2 * (LOOKS + 1)))
    assert told.count(Command.KILL) == 2


def test_a_helper_that_was_well_is_started_again_at_once() -> None:
    dead = after(SERVES, Ended(100.0))
    assert commands(dead, Passed(100.0), Passed(101.0), Started(100.0)) == [Command.START, None, None]


def test_helpers_that_were_well_are_all_started_at_once() -> None:
    helper = SERVES
    for at in (1_000.0, 2_000.0, 3_000.0):
        helper = after(helper, Ended(at))
        assert helper.at == at
        helper = after(helper, Passed(at), Started(at), Answered(at))


def test_deaths_soon_after_a_start_make_pauses_that_double() -> None:
    helper, pauses = SERVES, []
    for _ in range(12):
        at = helper.at + 0.5
        helper = after(helper, Ended(at))
        pauses.append(helper.at - at)
        helper = after(helper, Passed(helper.at), Started(helper.at), Answered(helper.at))
    assert pauses == pytest.approx(
        [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    )


def test_a_helper_that_answered_for_the_whole_span_was_well() -> None:
    ill = after(SERVES, Ended(1.0), Started(2.0), Answered(3.0))
    assert after(ill, Ended(3.0 + STILL_S - 0.1)).deaths == 2
    assert after(ill, Ended(3.0 + STILL_S)).deaths == 1
    assert after(ill, Answered(9.0), Ended(3.0 + STILL_S)).deaths == 1, "the first answer counts"


@pytest.mark.parametrize(("helper", "most"), [(NEW, FIRST_STARTS_MAX), (SERVES, STARTS_MAX + 1)], ids=["never", "has"])
def test_an_agent_gives_up_after_so_many_starts_in_a_row_without_an_answer(helper: Helper, most: int) -> None:
    """The helper that has answered was no such start."""
    told: list[Command | None] = []
    for _ in range(most):
        at = helper.at or 1.0
        helper, command = transition(helper, Ended(at))
        told.append(command)
        if command is None:
            helper, started = transition(helper, Passed(helper.at))
            assert started is Command.START
    assert told == [*[None] * (most - 1), Command.GIVE_UP]
    assert helper.given_up
    assert commands(helper, Passed(1e9)) == [None]


def test_an_answer_in_between_forgets_the_starts_without_one() -> None:
    helper = after(SERVES, *[Ended(1.0)] * STARTS_MAX)
    assert not helper.given_up
    assert after(helper, Answered(2.0)).mute == 0


def test_a_span_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="still_s"):
        Helper(0.0, 0.0)
