"""The situations that runs must show: runs without one prove nothing about it (docs/protocol.md#sometimes)."""

from __future__ import annotations

from collections.abc import Iterator

from elastic.core.rendezvous import Arrive, Complete, Deed, Done, Evict, Leave, Overdue, RendezvousState, Status
from elastic.core.world import Node, Why

EXPECTED, IN, WAITING, DONE, GONE, *_ = Status


def sometimes(before: RendezvousState, edit: Deed, me: Node, after: RendezvousState) -> Iterator[str]:
    """Yield the names of the situations that one write shows."""
    yield from _completions(before, edit, after)
    yield from _ends(before, edit, after)
    yield from _seats(before, edit, me, after)


def _completions(before: RendezvousState, edit: Deed, after: RendezvousState) -> Iterator[str]:
    if after.complete and (not before.complete or after.round > before.round):
        how = {Complete: "last call", Arrive: "last arrival"}.get(type(edit), "a seat dropped")
        yield f"complete by {how}"
        if after.census[IN] == after.limits.max_nodes:
            yield "complete at max"
    if before.round == after.round and before.quorum_at is not None and after.quorum_at is None:
        yield "quorum lost"
    if after.closed:
        yield f"closed {after.closed.ending.name}"


def _ends(before: RendezvousState, edit: Deed, after: RendezvousState) -> Iterator[str]:
    if after.round > before.round and after.ended:
        yield f"end by {after.ended.why.value}"
        if before.census[DONE]:
            yield "a done node called back"
    if after.round == before.round and after.failures < before.failures:
        yield "refund over budget" if before.over_budget else "refund"
    if isinstance(edit, Evict) and before.complete and after.round == before.round and before.census[DONE]:
        yield "a done node dies"
    if (
        before.ended
        and before.ended.why is Why.FAILED
        and isinstance(edit, Evict)
        and after.failures == before.failures
    ):
        yield "a death without refund"


def _seats(before: RendezvousState, edit: Deed, me: Node, after: RendezvousState) -> Iterator[str]:
    if after.redundancy_list:
        yield "a spare"
    if any(before.seats[who].status is WAITING for who in after.participants if who in before.seats):
        yield "a spare promoted"
    if isinstance(edit, Arrive) and before.finishing and before.complete:
        yield "a newcomer behind a finishing round"
    if set(after.those(Status.ASIDE)) - set(before.those(Status.ASIDE)):
        yield "a node set aside"
    if isinstance(edit, Arrive) and me in before.those(Status.ASIDE) and me in after.seats:
        yield "a node back that was set aside"
    if set(before.those(Status.ASIDE)) & set(after.expected):
        yield "a node called back that was set aside"
    if isinstance(edit, Evict) and set(before.expected) - set(after.seats):
        yield "expected dropped as dead"
    if isinstance(edit, Overdue):
        yield "expected dropped as overdue"
    if isinstance(edit, Leave) and me not in before.seats:
        yield "the bump"
    if isinstance(edit, Done) and after.closed is None:
        yield "done before the others"
    if isinstance(edit, Arrive):
        for old in (node for node in before.seats if node.slot == me.slot and node.incarnation < me.incarnation):
            yield f"superseded {before.seats[old].status.name}"
