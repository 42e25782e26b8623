"""The order of ranks: in which order the participants of an open round are the members of its world.

A first world is ordered naturally: by the places that its nodes were given (`--node-rank`, Slurm's numbers), then by their
hosts' names, with numbers compared as numbers, then by arrival. Later the survivors keep their order, and newcomers follow
them by arrival, but for the places: a lower one comes first in every round.

A rank policy makes the nodes of a group neighbours: of a rack, say. The groups are in the order of their first nodes, and
the rest holds within a group. The policy is a label of each node, and that of the first one counts, so all nodes compute
one order from the register alone.

Where worlds have whole units, the nodes over the last unit come after all others: they are no members, and wait. Those are
the last by the natural order in the first round, and the last newcomers later, so survivors stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..world import Node, Profile, natural
from .state import RendezvousState

Profiles = Mapping[Node, Profile]


def in_rank_order(state: RendezvousState) -> tuple[Node, ...]:
    """Return the participants in the order of the ranks that they have when the round is complete now. Those that are over
    the last whole unit come last."""
    profiles = {node: state.seats[node].profile for node in state.participants}
    nodes = list(profiles)
    if state.round == 0:
        nodes = sorted(profiles, key=lambda node: (profiles[node].given_place, natural(profiles[node].host)))
    size = state.limits.whole(len(nodes))
    return (*_neighbours(nodes[:size], profiles[nodes[0]].rank_keys, profiles), *nodes[size:])


def _neighbours(nodes: Iterable[Node], keys: tuple[str, ...], profiles: Profiles) -> list[Node]:
    """Return the nodes with those of each group beside each other, and by their places within."""
    if not keys:
        return sorted(nodes, key=lambda node: profiles[node].given_place)
    groups = dict[tuple[str, ...], list[Node]]()
    for node in nodes:
        groups.setdefault(profiles[node].groups(keys[:1]), []).append(node)
    return [node for group in groups.values() for node in _neighbours(group, keys[1:], profiles)]
