"""What the workers of a running job are doing, for people and for programs: equal stacks in one line, the odd ones last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...adapters.report.stack_records import grouped
from ...adapters.store.queries import Query, Reply
from ...core.rendezvous import RendezvousState
from ...core.values import frozen
from ...core.world import Node, Stacks
from .job import groups
from .sentences import RANKS, few, names_of, ranks_of
from .text import count

FORMAT = 1
"""The version of `data`."""
PLACES_SHOWN = 32


@frozen
class Answered:
    """What the agents of a job have answered."""

    run_id: str
    store: str
    state: RendezvousState
    """The register when they were asked."""
    query: Query
    replies: Mapping[Node, Reply]

    @property
    def stacks(self) -> tuple[Stacks, ...]:
        return tuple(reply.stacks for reply in self.replies.values())

    @property
    def text(self) -> str | None:
        """Return all that is known of the worker that was asked for; None if nobody has told of it."""
        return next((reply.text for reply in self.replies.values() if reply.text), None)


def lines(answered: Answered) -> list[str]:
    """Return the lines for people: bounded, whatever the size of the job."""
    names, replies, nodes = names_of(answered.state), answered.replies, answered.state.present
    hosts = {rank: names[stacks.node] for stacks in answered.stacks for rank, _ in stacks.places}
    places = list(grouped(answered.stacks).items())
    told = [f"{ranks_of(ranks)} {place}{_hosts(ranks, hosts)}" for place, ranks in places[:PLACES_SHOWN]]
    if len(places) > PLACES_SHOWN:
        others = sum(len(ranks) for _, ranks in places[PLACES_SHOWN:])
        told.append(f"{count(others, 'rank')} in {len(places) - PLACES_SHOWN} other places (--json has all)")
    idle = [names[node] for node in nodes if node in replies and not replies[node].stacks.places]
    silent = [names[node] for node in nodes if node not in replies]
    told += [f"no workers: {few(idle)}"] if idle else []
    told += [f"no answer: {few(silent)}"] if silent else []
    return [*told, *_full(answered)]


def _hosts(ranks: Sequence[int], hosts: Mapping[int, str]) -> str:
    """Return where the odd ones are; a group of many is everywhere."""
    return "" if len(ranks) > RANKS else f" · {few(list(dict.fromkeys(hosts[rank] for rank in ranks)))}"


def _full(answered: Answered) -> list[str]:
    rank = answered.query.rank
    if rank is None:
        return []
    if answered.text is None:
        return ["", f"rank {rank}: nobody has told of it"]
    return ["", f"rank {rank}:", *answered.text.split("\n")]


def data(answered: Answered) -> dict[str, Any]:
    """Return all of it for programs; docs/launch.md has the fields."""
    names, replies = names_of(answered.state), answered.replies
    return {
        "format": FORMAT,
        "job": answered.run_id,
        "store": answered.store,
        "round": answered.query.round,
        "stacks": groups(answered.stacks),
        "nodes": [
            {
                "node": str(node),
                "name": names[node],
                "host": answered.state.seats[node].profile.host,
                "answered": node in replies,
                "ranks": [rank for rank, _ in replies[node].stacks.places] if node in replies else [],
            }
            for node in answered.state.present
        ],
        "full": answered.text,
    }
