"""The standstill of a node's workers, while the store is silent: a pure function of what looks at them show.

A worker makes progress when its output grows, its processes use CPU time, or its main thread has another stack. A node
stands still since the last look at which a worker had made progress, or another one was there. To ask for a stack costs the
worker some CPU time, so that is read again afterwards, and the next look compares with that.
"""

from __future__ import annotations

from collections.abc import Mapping

from .values import field, frozen

LOOKS = 8
"""The number of looks within `join_timeout`."""
LOOK_MAX_S = 15.0
"""The longest span between two looks."""


@frozen
class Sight:
    """What one look shows of a worker: its process, the size of its output, its CPU time before and after it was asked for
    its stack, and the stack."""

    pid: int
    output: int = 0
    cpu_before: int = 0
    cpu_after: int = 0
    stack: str = ""


@frozen
class Watch:
    """What was seen last, by rank, and since when the node stands still; None: no worker was seen."""

    since: float | None = None
    sights: Mapping[int, Sight] = field(factory=dict)


def look(watch: Watch, sights: Mapping[int, Sight], now: float) -> Watch:
    """Return the watch after this look."""
    if not sights:
        return Watch()
    same = watch.sights.keys() == sights.keys()
    stands = same and not any(_moved(watch.sights[rank], sight) for rank, sight in sights.items())
    return Watch(watch.since if stands else now, sights)


def every_s(join_timeout: float) -> float:
    """Return the span between two looks."""
    return min(join_timeout / LOOKS, LOOK_MAX_S)


def _moved(before: Sight, now: Sight) -> bool:
    told_before = before.pid, before.output, before.cpu_after, before.stack
    return told_before != (now.pid, now.output, now.cpu_before, now.stack)
