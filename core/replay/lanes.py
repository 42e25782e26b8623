"""Lanes of a picture: one lane per node, with spans and marks. A program that draws needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ..group import Phase
from ..rendezvous import Deed, End, RendezvousState, Restore
from ..values import frozen
from ..world import Node

SpanKind: TypeAlias = Literal[
    "joining", "held", "running", "moving", "stopping", "barrier", "leaving", "ended", "waiting", "checking"
]
"""A phase of the node's workers; `waiting` is the joining of one that finds no room."""
SPANS: Mapping[Phase, SpanKind] = {
    Phase.CHECKING: "checking",
    Phase.JOINING: "joining",
    Phase.HELD: "held",
    Phase.RUNNING: "running",
    Phase.MOVING: "moving",
    Phase.STOPPING: "stopping",
    Phase.BARRIER: "barrier",
    Phase.LEAVING: "leaving",
    Phase.ENDED: "ended",
}
MarkKind: TypeAlias = Literal["fault", "failure", "write", "end", "complete", "closed", "progress", "violation"]


@frozen
class Span:
    """What the node was doing from one time to another."""

    node: Node
    start: float
    end: float
    kind: SpanKind
    label: str = ""


@frozen
class Mark:
    """An event on the node at one time."""

    node: Node
    at: float
    kind: MarkKind
    label: str = ""


@frozen
class Lanes:
    """All nodes, in the order of their lanes from top to bottom."""

    nodes: tuple[Node, ...]
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    gaps: tuple[tuple[float, float], ...] = ()
    """From when to when nothing was seen of any node."""


def marked(node: Node, at: float, did: str, write: tuple[RendezvousState | None, Deed, RendezvousState]) -> Mark:
    """Return the mark of a write, labelled with what came of it; `did` says it where that was nothing more."""
    before, edit, after = write
    kind = mark_of(before, edit, after)
    if kind == "closed" and after.closed:
        return Mark(node, at, kind, f"closed {after.closed.ending.name}")
    if kind == "end" and before and after.ended:
        ends = f"ends round {before.round} ({after.ended.why.value})"
        return Mark(node, at, kind, ends if isinstance(edit, End) else f"{did}: {ends}")
    return Mark(node, at, kind, f"round {after.round}" if kind == "complete" else did)


def mark_of(before: RendezvousState | None, edit: Deed, after: RendezvousState) -> MarkKind:
    """Return the mark for a write; if it did several things, for the most important one. A restored register names what
    ended or was completed before."""
    if after.closed:
        return "closed"
    if isinstance(edit, Restore):
        return "write"
    if before and after.round > before.round:
        return "end"
    return "complete" if after.complete and not (before and before.complete) else "write"
