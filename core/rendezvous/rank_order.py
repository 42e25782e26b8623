"""The order of ranks: in which order the participants of an open round are the members of its world.

A first world is ordered naturally: by the places that its nodes were given (`--node-rank`, Slurm's numbers), then by their
hosts' names, with numbers compared as numbers, then by arrival. Later the survivors keep their order, and newcomers follow
them by arrival, but for the places: a lower one comes first in every round.

A rank policy makes the nodes of a group neighbours: of a rack, say. The groups are in the order of their first nodes, and
the rest holds within a group. The policy is a label of each node, and that of the first one counts, so all nodes compute
one order from the register alone.

Where worlds have whole units, the nodes over the last unit are no members, and wait. Those are the last by the natural
order in the first round, and the last newcomers later, so survivors stay. Where a unit is a segment, with one value of a
label, the nodes of a value are neighbours. A rank policy then puts each value's nodes into the groups of the first of them,
and holds among them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..world import Node, Profile, natural
from .state import RendezvousState

Profiles = Mapping[Node, Profile]
Groups = Mapping[Node, tuple[str, ...]]
"""The groups of each node, the widest first."""


def in_rank_order(state: RendezvousState) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return the members of the world that the participants make now, in the order of their ranks, and those that are in no
    whole unit of it."""
    profiles = {node: state.seats[node].profile for node in state.participants}
    nodes = list(profiles)
    if state.round == 0:
        nodes = sorted(profiles, key=lambda node: (profiles[node].given_place, natural(profiles[node].host)))
    members = state.fit(nodes)
    keys = profiles[members[0]].rank_keys
    groups: Groups = {node: profiles[node].groups(keys) if keys else () for node in members}
    if state.limits.segment:
        groups = _in_segments(groups, state.values(members))
    over = tuple([node for node in nodes if node not in groups])
    return tuple(_neighbours(members, groups, profiles)), over


def _in_segments(groups: Groups, values: Mapping[Node, str]) -> Groups:
    """Return the groups that make the nodes of a value neighbours: those of its first node, the value, and its own."""
    firsts = dict[str, tuple[str, ...]]()
    for node, value in values.items():
        firsts.setdefault(value, groups[node])
    return {node: (*firsts[value], value, *groups[node]) for node, value in values.items()}


def _neighbours(nodes: Sequence[Node], groups: Groups, profiles: Profiles, depth: int = 0) -> list[Node]:
    """Return the nodes with those of each group beside each other, and by their places within."""
    if depth == len(groups[nodes[0]]):
        return sorted(nodes, key=lambda node: profiles[node].given_place)
    by_group = dict[str, list[Node]]()
    for node in nodes:
        by_group.setdefault(groups[node][depth], []).append(node)
    return [node for group in by_group.values() for node in _neighbours(group, groups, profiles, depth + 1)]
