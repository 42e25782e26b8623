"""Which runs of a store are told to somebody who asks for one that is not there: all, or of many those called most alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import nlargest
from itertools import takewhile

from ...core.values import frozen

RUNS_MAX = 256
"""The most runs that are told."""


@frozen
class Runs:
    """Ids of runs in a store."""

    ids: Collection[str] = ()
    is_part: bool = False
    """True if the store may have others."""


def nearest(ids: Iterable[str | None], wanted: str) -> Runs:
    """Return those of these ids that are called most like the one that is wanted. None stands for ids that were not read."""
    is_part, count = False, 0

    def read() -> Iterable[str]:
        nonlocal is_part, count
        for each in ids:
            if each is None:
                is_part = True
            else:
                count += 1
                yield each

    found = frozenset(nlargest(RUNS_MAX, read(), key=lambda each: _alike(each, wanted)))
    return Runs(found, is_part or count > RUNS_MAX)


def _alike(one: str, other: str) -> int:
    """Return how many characters two names have in common, from the beginning and from the end. This is cheap, and high
    for a single slip."""
    return _shared(one, other) + _shared(one[::-1], other[::-1])


def _shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def slips(name: str) -> set[str]:
    """Return this name with two neighbours swapped, or with a character left out."""
    swapped = {name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1)}
    return swapped | {name[:at] + name[at + 1 :] for at in range(len(name))}
