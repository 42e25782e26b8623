"""A run of a node's workers, and the buckets of its time, which are known when its workers have told what they came to.

A node starts until the last of its workers has made its first progress. It does again what had been done before, until the
last has passed that. The busy time is that of the worker that was busy longest: the others wait for it. Where it lies within
the run is not told, so a picture has it at the end of what it interrupts. A worker that starts again alone, while the others
run on, changes none of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..values import frozen
from ..work import OTHER, Mark, Worked
from ..world import Node
from .entries import BUCKETS, Kind, Piece, Reason, micros


@frozen
class Run:
    """The workers of a node, from the command that starts them until none of them is to run any longer."""

    begin: int
    reason: Reason
    """Why they had to be started."""
    job: str
    says_steps: bool = False
    """An earlier run of this node has told of its progress, so one without any did not come so far."""
    executed_at: int | None = None
    """When their processes were there."""
    end: int | None = None
    ended: int | None = None
    """The round in which it had its end."""
    failed: int | None = None
    """The rank of the first of them that failed."""
    hung: tuple[int, ...] = ()
    """The ranks of those that the hang watch has ended."""
    works: tuple[Worked, ...] = ()
    """What those of them came to that have ended."""

    @property
    def speaking(self) -> tuple[Worked, ...]:
        """Return the first starts of the workers that made progress."""
        return tuple(work for work in self.works if work.first and not work.start)


@frozen
class _Part:
    """A part of a run in one bucket; `busy` is the busy time in it, by name."""

    bucket: str
    reason: Reason
    start: int
    end: int
    busy: tuple[tuple[str, int], ...] = ()
    tail: int | None = None


def pieces(run: Run, node: Node, now: int) -> Iterator[Piece]:
    """Yield the pieces of a run that lasts until now, if it has no end."""
    for part in _parts(run, now if run.end is None else run.end):
        job = run.job if isinstance(part.reason, int) or part.tail is not None else ""
        at = part.end - sum(spent for _, spent in part.busy)
        if at > part.start:
            yield Piece(node, part.start, at, part.bucket, part.reason, job, tail=part.tail)
        for name, spent in part.busy:
            yield Piece(node, at, at + spent, name, Kind.PROGRAM)
            at += spent


def _parts(run: Run, end: int) -> Iterator[_Part]:
    """Yield the parts of a run with the busy time in each. The last one is what came after the last progress."""
    works_at, anew_at = _bounds(run, end)
    last_at = _within(max((micros(work.last.at) for work in run.speaking if work.last), default=end), works_at, end)
    work, again = ("training" if run.speaking else "running", Kind.NONE), ("recomputed", run.reason)
    tail, anew_at = again if anew_at > last_at else work, min(anew_at, last_at)
    bounds = (
        ("starting", run.reason, run.begin, works_at, None),
        (*again, works_at, anew_at, None),
        (*work, anew_at, last_at, None),
        (*tail, last_at, end, run.ended),
    )
    left = _busy(run)
    for (bucket, reason, start, until, ended), busy in zip(bounds, _shares(run), strict=True):
        spent, left = _spent(left, min(busy, until - start))
        yield _Part(bucket, reason, start, until, spent, ended)


def _bounds(run: Run, end: int) -> tuple[int, int]:
    """Return when the node worked, and when it did what had not been done before."""
    if not (speaking := run.speaking):
        is_late = run.executed_at is None or run.says_steps
        works_at = end if is_late else _within(run.executed_at or end, run.begin, end)
        return works_at, works_at
    works_at = max(micros(work.first.at) for work in speaking if work.first)
    works_at = _within(works_at, run.begin, end)
    anew_at = max(_anew_at(work, works_at) for work in speaking)
    return works_at, _within(anew_at, works_at, end)


def _anew_at(work: Worked, works_at: int) -> int:
    """Return when this worker did what had not been done before."""
    if work.passed:
        return micros(work.passed.at)
    again = work.before is not None and work.step is not None
    return micros(work.ended_at) if again else works_at


def _pace(run: Run) -> Worked | None:
    """Return the worker that was busy longest."""
    firsts = [work for work in run.works if not work.start]
    return max(firsts, key=lambda work: (_total(work), -work.rank), default=None)


def _total(work: Worked) -> float:
    return sum(seconds for _, seconds in work.spans)


def _busy(run: Run) -> tuple[tuple[str, int], ...]:
    """Return the busy time by name. A name that is a bucket's counts as another."""
    found, work = Counter[str](), _pace(run)
    for name, seconds in work.spans if work else ():
        found[OTHER if name in BUCKETS else name] += micros(seconds)
    return tuple(found.items())


def _shares(run: Run) -> tuple[int, ...]:
    """Return the busy time before the first progress, until what had been done before was passed, until the last progress,
    and after it."""
    if (work := _pace(run)) is None:
        return 0, 0, 0, 0
    end = Mark(busy_s=_total(work))
    first = work.first or (Mark() if not run.says_steps else end)
    last = work.last or end
    passed = work.passed or (last if work.before is not None and work.step is not None else first)
    bounds = [micros(mark.busy_s) for mark in (Mark(), first, passed, last, end)]
    return tuple(max(later - earlier, 0) for earlier, later in pairwise(bounds))


def _spent(
    left: Sequence[tuple[str, int]], busy: int
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    """Return this much of the busy time, name by name, and what is left of it."""
    spent, rest = list[tuple[str, int]](), list[tuple[str, int]]()
    for name, most in left:
        some = min(most, busy)
        busy -= some
        spent += [(name, some)] if some else []
        rest += [(name, most - some)] if most > some else []
    return tuple(spent), tuple(rest)


def _within(at: int, least: int, most: int) -> int:
    return min(max(at, least), most)
