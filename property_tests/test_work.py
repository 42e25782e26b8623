"""Whatever a program writes into its page, its agent makes sums of it that come out."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from elastic.core.trace.plain import made, plain
from elastic.core.work import Mark, Said, Worked, told

TIMES = st.one_of(st.floats(), st.floats(90.0, 210.0))
WORDS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 12))
SPANS = st.tuples(st.text(max_size=2), st.one_of(st.floats(), st.floats(0.0, 60.0)))
MARKS = st.builds(Mark, TIMES, TIMES)
SAYINGS = st.builds(
    Said,
    *(MARKS, MARKS, MARKS),
    *(WORDS, WORDS, WORDS, WORDS, TIMES),
    st.lists(SPANS, max_size=12).map(tuple),
    st.none() | st.tuples(st.text(max_size=2), TIMES),
)


@st.composite
def lives(draw: st.DrawFn) -> Worked:
    began_at, ended_at, at = sorted(draw(st.tuples(*[st.floats(95.0, 205.0)] * 3)))
    before = draw(st.none() | st.integers(0, 12))
    return Worked(1, 2, 0, draw(st.booleans()), began_at, ended_at, at, before)


@given(lives(), SAYINGS)
def test_its_parts_are_its_life_and_none_of_them_is_less_than_nothing(life: Worked, said: Said) -> None:
    work = told(life, said)
    assert evolve(work, at=work.at) == work == made(plain(work, Worked), Worked)
    marks = [mark for mark in (work.first, work.passed, work.last) if mark]
    busy_s = sum(seconds for _, seconds in work.spans)
    at, so_far, parts = work.began_at, 0.0, []
    for mark in [*marks, Mark(work.ended_at, busy_s)]:
        parts.append(mark.at - at - (mark.busy_s - so_far))
        at, so_far = mark
    assert all(part >= -1e-9 for part in parts)
    assert abs(sum(parts) + busy_s - (work.ended_at - work.began_at)) < 1e-9
