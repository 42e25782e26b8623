"""Nodes that are lost again and again just after a start: the agent dies with its workers there, and cannot say why. And the
rounds without progress of a job that gave up for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...core.rendezvous import Ended, RendezvousState
from ...core.world import Why
from .sentences import PLACES, who
from .text import count

EARLY_S = 5.0
"""A node that lives for less than this in a round is lost early."""
ROUNDS = 20
"""The most rounds without progress that are shown."""
_FIRST = 3
"""The number of early losses in a row that is reported first. The next reports follow at twice the number."""
_WHY = "perhaps its agent is killed together with its workers, as by memory.oom.group: look at its memory"


def lost_again(name: str, number: int) -> str:
    """Return the sentence of a node that was lost again and again, with the likely reason."""
    return f"{name} was lost {count(number, 'time')} soon after a start: {_WHY}"


def fruitless_rows(ends: Sequence[Ended], state: RendezvousState | None) -> list[tuple[str, str]]:
    """Return what each of the last of these rounds without progress ended by, and the nodes that were lost again and again:
    each with its title."""
    rows = [("before that", count(len(ends) - ROUNDS, "round"))] if len(ends) > ROUNDS else []
    rows += [(f"round {each.round}", _end(each, state)) for each in ends[-ROUNDS:]]
    often = sorted(state.losses.items(), key=lambda each: (-each[1], each[0])) if state and ends else []
    return [*rows, *(("lost", lost_again(name, number)) for name, number in often[:PLACES] if number > 1)]


def _end(ended: Ended, state: RendezvousState | None) -> str:
    """Return what a round without progress ended by."""
    by = who(ended.by, "", state)
    match ended.why:
        case Why.FAILED:
            return f"a worker failed on {by}"
        case Why.FENCED:
            return f"{by} had lost the store, and stopped its workers"
        case Why.LOST:
            return f"{', '.join(ended.lost) or 'a node'} was lost"
        case _:
            return "a node came back that had been lost"


class EarlyLosses:
    """The early losses in a row of each node, by name. `ttl` is the silence after which a node is lost."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self._counts: dict[str, int] = {}

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
