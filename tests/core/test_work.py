"""What a worker said of its work: what an agent takes over of it, and what no trace may say."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve

from elastic.core.trace.plain import made, plain
from elastic.core.trace.steps import STEPS
from elastic.core.work import NAMES_MAX, OTHER, STEP_MAX, Mark, Said, Saves, Worked, told

LIFE = Worked(round=2, rank=5, start=0, standby=False, began_at=100.0, ended_at=200.0, at=201.0)
AGAIN = evolve(LIFE, before=7)
SPANS = (("checkpoint", 12.0), ("load", 4.0))
SAID = Said(Mark(110.0, 4.0), Mark(140.0, 10.0), Mark(190.0, 16.0), 6, 21, 11, 2, 150.0, SPANS)
SAVES = Saves(10, 150.0, 2)
WORKED = evolve(
    AGAIN, first=SAID.first, passed=SAID.passed, last=SAID.last, first_step=5, step=20, saved=SAVES, spans=SAID.spans
)


def test_what_can_be_true_is_taken_over_as_it_was_said() -> None:
    assert told(AGAIN, SAID) == WORKED


def test_a_trace_has_it_as_it_was() -> None:
    for work in (WORKED, LIFE):
        assert made(plain(work, Worked), Worked) == work
        assert STEPS[told](work) == work


def test_a_program_that_said_nothing_has_a_life_and_no_progress() -> None:
    assert told(AGAIN, Said()) == AGAIN
    assert told(LIFE, Said(saved=4, saves=1, saved_at=120.0)) == evolve(LIFE, saved=Saves(3, 120.0, 1))


def test_where_nothing_was_reached_before_nothing_is_passed() -> None:
    assert (told(LIFE, SAID).passed, told(LIFE, SAID).step) == (None, 20)
    assert told(evolve(LIFE, before=20), SAID).passed is None
    assert told(evolve(LIFE, before=19), SAID).passed == SAID.passed


def test_progress_without_steps_has_none_and_passes_nothing() -> None:
    work = told(AGAIN, SAID._replace(first_step=0, step=0))
    assert (work.first, work.first_step, work.step, work.passed) == (SAID.first, None, None, None)
    assert told(AGAIN, SAID._replace(step=0)).step is None


def test_a_span_that_is_open_at_the_end_counts_up_to_it() -> None:
    assert dict(told(AGAIN, SAID._replace(span=("load", 195.0))).spans) == {"checkpoint": 12.0, "load": 9.0}
    assert told(LIFE, Said(span=("load", 0.0))).spans == (("load", 100.0),)


def test_names_are_bounded_and_the_others_count_together() -> None:
    spans = tuple((str(number), 1.0) for number in range(NAMES_MAX + 3))
    found = dict(told(LIFE, Said(spans=(*spans, ("", 2.0), ("0", 5.0)))).spans)
    assert found == {**{str(number): 1.0 for number in range(NAMES_MAX)}, "0": 6.0, OTHER: 5.0}


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        (SAID._replace(first=Mark(5.0, 4.0)), {"first": Mark(100.0, 0.0)}),
        (SAID._replace(first=Mark(math.nan)), {"first": None, "last": None, "step": None}),
        (SAID._replace(passed=Mark()), {"passed": SAID.first}),
        (SAID._replace(passed=Mark(math.nan, math.nan)), {"passed": SAID.first}),
        (SAID._replace(last=Mark(math.inf, math.inf)), {"last": Mark(200.0, 16.0)}),
        (SAID._replace(last=Mark(190.0, 0.0)), {"last": Mark(190.0, 10.0)}),
        (SAID._replace(step=3), {"first_step": 5, "step": 5, "passed": None}),
        (SAID._replace(first_step=STEP_MAX + 2), {"first_step": None, "step": None}),
        (SAID._replace(saved=2**64 - 1), {"saved": None}),
        (SAID._replace(saved=0), {"saved": None}),
        (SAID._replace(saves=0, saved_at=math.nan), {"saved": Saves(10, 100.0, 1)}),
        (SAID._replace(saves=2**64 - 1, saved_at=math.inf), {"saved": Saves(10, 200.0, STEP_MAX)}),
        (SAID._replace(spans=(("x", math.nan), ("y", -1.0))), {"spans": ()}),
        (
            SAID._replace(spans=(("x", 70.0), ("y", math.inf))),
            {"spans": (("x", 70.0), ("y", 30.0)), "first": Mark(110.0, 10.0)},
        ),
        (SAID._replace(span=("x", math.nan)), {"spans": (*SAID.spans, ("x", 84.0))}),
    ],
)
def test_what_cannot_be_true_is_bent_until_it_can(said: Said, changes: dict[str, Any]) -> None:
    work = told(AGAIN, said)
    assert {name: getattr(work, name) for name in changes} == changes


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"round": -1}, "below 0"),
        ({"rank": -1}, "below 0"),
        ({"start": -1}, "below 0"),
        ({"last": None}, "a first without a last"),
        ({"first": None}, "a first without a last"),
        ({"first": None, "passed": None, "last": None}, "steps without progress"),
        ({"saved": SAVES._replace(step=-1)}, "a step that is not from 0 to"),
        ({"saved": SAVES._replace(number=STEP_MAX + 1)}, "a step that is not from 0 to"),
        ({"saved": SAVES._replace(number=0)}, "a save that is none"),
        ({"saved": SAVES._replace(at=99.0)}, "a save before its beginning, or after its end"),
        ({"saved": SAVES._replace(at=math.nan)}, "a save before its beginning, or after its end"),
        ({"before": STEP_MAX + 1}, "a step that is not from 0 to"),
        ({"step": None}, "a first without a last"),
        ({"first_step": None}, "a first without a last"),
        ({"first_step": 21}, "steps without progress, or that fall"),
        ({"passed": None}, "do not fit"),
        ({"before": None}, "do not fit"),
        ({"before": 20}, "do not fit"),
        ({"began_at": 111.0}, "not in this order"),
        ({"ended_at": 189.0}, "not in this order"),
        ({"at": 199.0}, "not in this order"),
        ({"at": math.inf}, "times that no clock shows"),
        ({"began_at": -math.inf}, "times that no clock shows"),
        ({"first": Mark(110.0, 11.0)}, "more busy time than there was"),
        ({"last": Mark(190.0, 9.0)}, "more busy time than there was"),
        ({"spans": (("x", 15.0),)}, "more busy time than there was"),
        ({"spans": (("x", 17.0), ("x", 1.0))}, "a name twice"),
        ({"spans": (("x", 20.0), ("y", -1.0))}, "less than no time"),
        ({"spans": tuple((str(number), 2.0) for number in range(NAMES_MAX + 2))}, "more spans than there are"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        evolve(WORKED, **changes)
