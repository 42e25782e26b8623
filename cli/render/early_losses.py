"""Nodes that are lost again and again just after a start: the agent dies with its workers there, and cannot say why."""

from __future__ import annotations

from collections.abc import Collection

from attrs import define, field

from .text import count

EARLY_S = 5.0
"""A node that lives for less than this in a round is lost early."""
_FIRST = 3
"""The number of early losses in a row that is reported first. The next reports follow at twice the number."""
_WHY = "perhaps its agent is killed together with its workers, as by memory.oom.group: look at its memory"


def lost_again(name: str, number: int) -> str:
    """Return the sentence of a node that was lost again and again, with the likely reason."""
    return f"{name} was lost {count(number, 'time')} soon after a start: {_WHY}"


@define
class EarlyLosses:
    """The early losses in a row of each node, by name. `ttl` is the silence after which a node is lost."""

    _ttl: float
    _counts: dict[str, int] = field(factory=dict, init=False)

    def note(self, lost: Collection[str], ran_s: float) -> list[str]:
        """Note that a round has ended after this time, and the nodes that it lost; return the lines to print."""
        if ran_s > EARLY_S + self._ttl:
            self._counts.clear()
            return []
        said = []
        for name in sorted(lost):
            number = self._counts[name] = self._counts.get(name, 0) + 1
            if number % _FIRST == 0 and (number // _FIRST).bit_count() == 1:
                said.append(lost_again(name, number))
        return said
