"""A run of a node's workers, and the buckets of its time, which are known when its workers have told what they came to.

A node starts until the last of its workers has made its first progress. It does again what had been done before, until the
last has passed that. The busy time is that of the worker that was busy longest: the others wait for it. Where it lies within
the run is not told, so a picture has it at the end of what it interrupts. A worker that starts again alone, while the others
run on, changes none of that; where no other has made progress, its first one counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..values import evolve, frozen
from ..work import OTHER, Mark, Worked, busy_s
from ..world import Node
from .entries import BUCKETS, Kind, Piece, Reason, micros


@frozen
class Tally:
    """What those workers of a run came to that have ended. It is as small of many workers as of one."""

    ended: int = 0
    """How many have ended."""
    first_at: int | None = None
    """The first progress of the last of them; None: none made any."""
    anew_at: int = 0
    """When the last of them had passed what had been done before, if one had to."""
    alone_at: int | None = None
    """The first progress of one that was started again alone."""
    last_at: int = 0
    """The last progress of any."""
    pace: Worked | None = None
    """The one that was busy longest."""


@frozen
class Run:
    """The workers of a node, from the command that starts them until none of them is to run any longer."""

    begin: int
    reason: Reason
    """Why they had to be started."""
    job: str
    round: int = 0
    """The round in which they were started."""
    size: int = 1
    """How many they are."""
    says_steps: bool = False
    """An earlier run of this node has told of its progress."""
    executed_at: int | None = None
    """When their processes were there."""
    end: int | None = None
    ended: int | None = None
    """The round in which it had its end."""
    succeeds: bool = False
    """All of them have succeeded."""
    failed: int | None = None
    """The rank of the first of them that failed."""
    hung: frozenset[int] = frozenset()
    """The ranks of those that the hang watch has ended."""
    tally: Tally = Tally()

    @property
    def speaks(self) -> bool:
        """Return True if the run has told of progress."""
        return self.tally.first_at is not None or self.tally.alone_at is not None

    @property
    def is_short(self) -> bool:
        """Return True if the run had its end before the progress that its program tells of. That is known when all of its
        workers have told what they came to. Workers that succeed without any had nothing left to do but that."""
        return self.says_steps and not self.speaks and not self.succeeds and self.tally.ended >= self.size


def noted(run: Run, work: Worked) -> Run:
    """Return the run with what one of its workers came to. Of one that was started again alone only its progress counts."""
    is_alone = work.start > 0 or work.round != run.round
    tally = run.tally
    if work.first and work.last:
        tally = evolve(tally, last_at=max(micros(work.last.at), tally.last_at))
    if is_alone and work.first:
        tally = evolve(tally, alone_at=min(micros(work.first.at), tally.alone_at or micros(work.first.at)))
    elif work.first:
        first_at = max(micros(work.first.at), tally.first_at or 0)
        tally = evolve(tally, first_at=first_at, anew_at=max(_anew_at(work), tally.anew_at))
    if not is_alone:
        tally = evolve(tally, ended=tally.ended + 1, pace=max(filter(None, (tally.pace, work)), key=_busiest))
    return evolve(run, tally=tally)


def _anew_at(work: Worked) -> int:
    """Return when this worker did what had not been done before; 0: always, as far as it tells."""
    if work.passed:
        return micros(work.passed.at)
    return micros(work.ended_at) if _only_again(work) else 0


def _only_again(work: Worked) -> bool:
    """Return True if a worker that has passed nothing did what had been done before."""
    return work.before is not None and work.step is not None


def _busiest(work: Worked) -> tuple[float, int]:
    return busy_s(work), -work.rank


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
            yield Piece(node, at, at + spent, name, Kind.PROGRAM, job if part.tail is not None else "", tail=part.tail)
            at += spent


def _parts(run: Run, end: int) -> Iterator[_Part]:
    """Yield the parts of a run with the busy time in each. The last one is what came after the last progress."""
    works_at, anew_at, last_at = _bounds(run, end)
    work, again = ("training" if run.speaks else "running", Kind.NONE), ("recomputed", run.reason)
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


def _bounds(run: Run, end: int) -> tuple[int, int, int]:
    """Return when the node worked, when it did what had not been done before, and when it made its last progress."""
    tally = run.tally
    first_at = tally.alone_at if tally.first_at is None else tally.first_at
    if first_at is None:
        works_at = end if run.executed_at is None or run.is_short else _within(run.executed_at, run.begin, end)
        return works_at, works_at, end
    works_at = _within(first_at, run.begin, end)
    return works_at, _within(tally.anew_at, works_at, end), _within(tally.last_at, works_at, end)


def _busy(run: Run) -> tuple[tuple[str, int], ...]:
    """Return the busy time by name. A name that is a bucket's counts as another."""
    found, work = Counter[str](), run.tally.pace
    for name, seconds in work.spans if work else ():
        found[OTHER if name in BUCKETS else name] += micros(seconds)
    return tuple(found.items())


def _shares(run: Run) -> tuple[int, ...]:
    """Return the busy time before the first progress, until what had been done before was passed, until the last progress,
    and after it."""
    if (work := run.tally.pace) is None:
        return 0, 0, 0, 0
    end = Mark(busy_s=busy_s(work))
    first = work.first or (end if run.is_short else Mark())
    last = work.last or end
    passed = work.passed or (last if _only_again(work) else first)
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
