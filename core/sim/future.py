"""Virtual time: a queue of planned events. Nothing sleeps; time jumps to the next event."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

from attrs import define, field

Happening: TypeAlias = tuple[float, int, Callable[..., None], tuple[Any, ...]]


@define
class Future:
    """Events of one time happen in the order in which they were planned."""

    now: float = 0.0
    planned: int = 0
    ahead: list[Happening] = field(factory=list)

    def at(self, when: float, what: Callable[..., None], *of: Any) -> None:
        self.planned += 1
        heappush(self.ahead, (when, self.planned, what, of))

    def passes(self, until: float) -> None:
        """Let time pass up to this point, with all events on the way."""
        ahead = self.ahead
        while ahead and ahead[0][0] <= until:
            when, _, what, of = heappop(ahead)
            if when > self.now:
                self.now = when
            what(*of)
        self.now = until
