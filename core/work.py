"""What one start of a worker came to: from when to when it ran, and what its program said of its steps.

A program writes into a page of memory that its agent reads when the worker has ended. It may have written anything, so
`told` takes over only what can be true: times lie within the worker's life and in order, and busy spans fill no more time
than there was. Whoever adds up times may rely on that. All times are of the agent's clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from .values import evolve, frozen

STEP_MAX = 2**63 - 1
NAMES_MAX = 8
"""The number of names of busy spans that are told apart. The others count as `OTHER`."""
OTHER = "other"
_ROUNDING_S = 1e-6


class Mark(NamedTuple):
    """A point in time, and how long the program had been busy by then."""

    at: float = 0.0
    busy_s: float = 0.0


class Saves(NamedTuple):
    """Holds what a worker told of its saves."""

    step: int
    """Work up to this step is safe."""
    at: float
    """When the last of them was whole."""
    number: int


class Said(NamedTuple):
    """What a page says. Nothing of it is certain. A time of 0 is none; a step is one more than the program's, 0 is none."""

    first: Mark = Mark()
    """The first progress."""
    passed: Mark = Mark()
    """The progress whose step was above what had been reached before."""
    last: Mark = Mark()
    first_step: int = 0
    step: int = 0
    saved: int = 0
    saves: int = 0
    """How many saves there were."""
    saved_at: float = 0.0
    """When the last one was whole."""
    spans: tuple[tuple[str, float], ...] = ()
    """The seconds of busy spans that are over, by name."""
    span: tuple[str, float] | None = None
    """The innermost busy span that is open, and since when it counts."""


@frozen
class Worked:
    """One start of one worker, told when it has ended.

    Progress is what the program says by `elastic.progress`. Without any, `first` is None, and so is all that follows from
    it. Busy spans never overlap: of nested ones the innermost counts. So of the time up to `first.at` all but `first.busy_s`
    was the start, from there to `passed.at` all but `passed.busy_s - first.busy_s` had been done before, and so on.
    """

    round: int
    rank: int
    """The round and the rank with which it was started. Under a restart scope of ranks it may run on in later rounds."""
    start: int
    """Which start of this rank on this node in the round it was; the first is 0."""
    standby: bool
    """It had been a standby. Then it began when it got its rank."""
    began_at: float
    ended_at: float
    at: float
    """When the agent wrote this down."""
    before: int | None = None
    """The highest step that an earlier start of this local rank on this node had told; the lowest of the others' if it had
    told none."""
    first: Mark | None = None
    """The first progress."""
    passed: Mark | None = None
    """The progress whose step was above `before`; None if none was, or if nothing had been reached before."""
    last: Mark | None = None
    first_step: int | None = None
    step: int | None = None
    """The highest step."""
    saved: Saves | None = None
    spans: tuple[tuple[str, float], ...] = ()
    """The seconds of busy spans by name."""

    def __attrs_post_init__(self) -> None:
        for wrong in _wrong(self):
            raise ValueError(f"a worker's work: {wrong}")


def busy_s(work: Worked) -> float:
    """Return for how many seconds this worker was busy."""
    return sum(seconds for _, seconds in work.spans)


def told(life: Worked, said: Said) -> Worked:
    """Return this life with what its page says, as far as that can be true."""
    spans, saved = _spans(said, life), _saves(said, life)
    if not said.first.at > 0:
        return evolve(life, saved=saved, spans=spans)
    first_step, step = _step(said.first_step), _step(said.step)
    if first_step is None or step is None:
        first_step = step = None
    else:
        step = max(first_step, step)
    passes = life.before is not None and step is not None and step > life.before
    first, *passed, last = _marks(
        life,
        sum(seconds for _, seconds in spans),
        (said.first, *([said.passed] if passes else []), said.last),
    )
    return evolve(
        life,
        first=first,
        passed=passed[0] if passed else None,
        last=last,
        first_step=first_step,
        step=step,
        saved=saved,
        spans=spans,
    )


def _step(number: int) -> int | None:
    """Return the step that is written as one more."""
    return number - 1 if 0 < number <= STEP_MAX + 1 else None


def _saves(said: Said, life: Worked) -> Saves | None:
    """Return the saves. Where a step is safe there was one at least."""
    if (step := _step(said.saved)) is None:
        return None
    return Saves(step, _between(said.saved_at, life.began_at, life.ended_at), min(max(said.saves, 1), STEP_MAX))


def _spans(said: Said, life: Worked) -> tuple[tuple[str, float], ...]:
    """Return the seconds by name, of no more names and of no more time than there can be."""
    found: dict[str, float] = {}
    left = life.ended_at - life.began_at
    opened = said.span and (said.span[0], life.ended_at - _between(said.span[1], life.began_at, life.ended_at))
    for name, seconds in (*said.spans, *([opened] if opened else [])):
        own = name if name and (name in found or len(found) < NAMES_MAX) else OTHER
        spent = _between(seconds, 0.0, left)
        left -= spent
        if spent > 0:
            found[own] = found.get(own, 0.0) + spent
    return tuple(found.items())


def _marks(life: Worked, busy_s: float, marks: Iterable[Mark]) -> Iterator[Mark]:
    """Yield the marks in order. Between two of them, and after the last, the program is busy for no longer than there is
    time."""
    before = Mark(life.began_at)
    for mark in marks:
        at = _between(mark.at, before.at, life.ended_at)
        rest_s = busy_s - (life.ended_at - at)
        most_s = min(busy_s, before.busy_s + (at - before.at))
        yield (before := Mark(at, _between(mark.busy_s, max(before.busy_s, rest_s), most_s)))


def _between(value: float, least: float, most: float) -> float:
    """Return the value, or the bound that is next to it; the least for what is no number."""
    return min(most, max(least, value))


# --- what no agent tells ----------------------------------------------------------------------------------------------


def _wrong(work: Worked) -> Iterator[str]:
    """Yield what of this cannot be."""
    if min(work.round, work.rank, work.start) < 0:
        yield "a round, rank or start below 0"
    saved = (work.saved.step, work.saved.number) if work.saved else ()
    steps = [step for step in (work.before, work.first_step, work.step, *saved) if step is not None]
    if not all(0 <= step <= STEP_MAX for step in steps):
        yield f"a step that is not from 0 to {STEP_MAX}"
    if (work.first is None) != (work.last is None) or (work.first_step is None) != (work.step is None):
        yield "a first without a last"
    if work.step is not None and (work.first is None or not work.first_step <= work.step):  # type: ignore[operator]
        yield "steps without progress, or that fall"
    if work.saved and not work.saved.number:
        yield "a save that is none"
    passes = work.before is not None and work.step is not None and work.step > work.before
    if passes != (work.passed is not None):
        yield "its steps and the time at which they passed those before do not fit"
    yield from _wrong_times(work)


def _wrong_times(work: Worked) -> Iterator[str]:
    """Yield what of the times and spans cannot be."""
    names, seconds = [name for name, _ in work.spans], [seconds for _, seconds in work.spans]
    if len(names) > NAMES_MAX + 1 or len({*names}) < len(names) or not all(each >= 0 for each in seconds):
        yield "more spans than there are, or a name twice, or less than no time"
    marks = [mark for mark in (work.first, work.passed, work.last) if mark]
    life = [Mark(work.began_at), *marks, Mark(work.ended_at, sum(seconds))]
    times = [*(mark.at for mark in life), work.at]
    if not all(map(math.isfinite, times)) or times != sorted(times):
        yield "times that no clock shows, or not in this order"
    if work.saved and not work.began_at <= work.saved.at <= work.ended_at:
        yield "a save before its beginning, or after its end"
    for before, mark in pairwise(life):
        if not -_ROUNDING_S <= mark.busy_s - before.busy_s <= mark.at - before.at + _ROUNDING_S:
            yield "more busy time than there was"
