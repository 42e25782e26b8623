"""Messages between a process and the store: questions, answers, and the news of a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from attrs import define

from ..rendezvous import Gather, Observe, Proposal, Propose, Write
from ..world import Life, Node
from .simulated_store import Shown


@define
class Look:
    """Read the register."""


@define
class Errand:
    """Another round trip, such as a failure that is put on record."""


Question: TypeAlias = Write | Observe | Propose | Gather | Look | Errand


class Counted(NamedTuple):
    """The store's answer to an `Observe`: the heartbeats, and the life that stands beside them."""

    counters: Mapping[Node, int | None]
    named: Life | None


Answer: TypeAlias = Shown | Counted | int | Mapping[Node, Proposal] | None
News: TypeAlias = tuple[Shown, float]
"""What the waiter has seen, and when it had asked."""

LOOK, ERRAND = Look(), Errand()
