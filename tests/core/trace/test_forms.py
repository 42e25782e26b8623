"""Lines of one form: their steps are those that the whole lines hold, and what would be refused there is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traced import Agent, finished, restored

from elastic.adapters.report.packed_lines import KEPT_MAX, packed, unpacked
from elastic.core.trace.forms import Form, Repeated
from elastic.core.trace.lines import Corrupt, entries

AGENT = finished().a
HEARD = (
    b'{"is":"asked","fed":{"is":"heartbeats","counters":{"b#1":57},"life":{"nonce":"a","epoch":1}},"now":5.0,'
    b'"ask":{"is":"wait","token":{"life":{"nonce":"a","epoch":1},"version":8},"until":6.0,"arm":false}}\n'
)


def repeated(line: bytes, *others: float) -> Repeated:
    """Return the packed line that says the same as this one, or has these numbers instead."""
    _, (shape, *_) = packed(line, ())
    short, _ = packed(line, (shape,))
    if others:
        short = json.dumps([1, *others]).encode() + b"\n"
    told, _ = unpacked(short, (Form(shape),))
    assert isinstance(told, Repeated)
    return told


def steps(lines: Sequence[bytes | Repeated]) -> list[object]:
    return [step for _, step in entries(lines)]


@pytest.mark.parametrize("agent", [AGENT, restored().a, restored().b])
def test_a_repeated_line_holds_the_step_of_the_whole_one(agent: Agent) -> None:
    again = [
        repeated(line) if len(line) < KEPT_MAX and packed(line, ())[1] != ((line,),) else line for line in agent.lines
    ]
    assert [each.whole if isinstance(each, Repeated) else each for each in again] == agent.lines
    assert steps(again) == steps(agent.lines)


def test_a_form_without_a_register_is_read_once_for_all_its_lines() -> None:
    line = repeated(HEARD)
    assert line.step == steps([HEARD])[0]
    later, _ = unpacked(b"[1,58,2,5.5,2,9,6.5]\n", (line.form,))
    make = line.form.make
    assert isinstance(later, Repeated) and make is not None
    assert [later.step] == steps([later.whole]) and line.form.make is make


def test_what_says_a_register_or_is_a_header_is_read_line_by_line() -> None:
    shown = b'{"is":"asked","fed":{"is":"pushed","state":{"same":4},"sent_at":1.0,"here":true},"now":1.0}\n'
    assert repeated(AGENT.lines[0]).step is None and repeated(shown).step is None


@pytest.mark.parametrize(
    ("line", "numbers", "wrong"),
    [
        (HEARD, (57.5, 1, 5.0, 1, 8, 6.0), "a whole number is wanted, not 57.5"),
        (HEARD, (57, 1, 1e300, 1, 8, 6.0), "a time that no clock shows"),
        (HEARD, (57, 1, 10**400, 1, 8, 6.0), "not one of 401 digits"),
        (HEARD, (57, -1, 5.0, 1, 8, 6.0), "epoch"),
        (HEARD.replace(b'"arm"', b'"harm"'), (57, 1, 5.0, 1, 8, 6.0), "wait: 'harm' is not known"),
        (HEARD.replace(b'"is":"heartbeats"', b'"is":7'), (7, 57, 1, 5.0, 1, 8, 6.0), "7 is not known"),
        (b'{"is":"stepped","commands":[{"is":"join","alive":5}],"at":2.0}\n', (5, 2.0), "an object is wanted, not 5"),
        (b'{"is":"hang end","round":1,"rank":0,"at":2.0,"hole":1}\n', (1, 0, 2.0, 1), "'hole' is not known"),
    ],
)
def test_numbers_that_make_no_step_are_refused_as_on_the_whole_line(
    line: bytes, numbers: tuple[float, ...], wrong: str
) -> None:
    short = repeated(line, *numbers)
    for read in (short, short.whole):
        with pytest.raises(Corrupt, match=f"line 2: .*({wrong})"):
            steps([AGENT.lines[0], read])


@pytest.mark.parametrize("place", [b'"b"', b"true", b'{"hole":"b"}'])
def test_an_object_that_looks_like_the_place_of_a_number_is_none(place: bytes) -> None:
    line = b'{"is":"asked","fed":{"is":"heartbeats","counters":{"b#1":{"hole":%b}}},"now":5.0}\n' % place
    with pytest.raises(Corrupt, match="line 2: a whole number is wanted"):
        steps([AGENT.lines[0], repeated(line)])


NUMBERS = st.one_of(st.integers(-3, 99), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
LINES = [line for line in AGENT.lines if packed(line, ())[1] != ((line,),) and len(line) < KEPT_MAX]


@given(st.sampled_from([HEARD, *LINES]), st.data())
def test_any_numbers_make_the_step_of_the_whole_line_or_are_refused_as_there(line: bytes, data: st.DataObject) -> None:
    own = repeated(line).numbers[1:]
    first = data.draw(st.integers(0, len(own) - 1))
    numbers = [*own[:first], data.draw(NUMBERS), *own[first + 1 :]]
    short = repeated(line, *numbers)
    assert outcome(short) == outcome(short.whole)


def outcome(line: bytes | Repeated) -> object:
    try:
        return repr(steps([AGENT.lines[0], line]))
    except Corrupt as reason:
        return str(reason)
