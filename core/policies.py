"""Rank policies: they decide which members of a world are active, and give every member a rank.

A policy is a function of the world alone, with a name that tells its parameters. It reads what a seat has said since its
arrival (slot, order, role, host, labels), and no history. So every rank computes the same answer by itself, and `digest`
proves it. A slot that is a number, as a launcher gives it to each rank, is the home of a rank: it outlives incarnations.

A policy turns one line-up into another, so policies compose: `chain(fill_gaps(), at_most(64))` first gives every member a
rank, and then makes reserves of the members beyond the 64th.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from itertools import chain as joined
from typing import TYPE_CHECKING, TypeAlias

from .values import field, frozen
from .world import Member, Node, World, came_in

if TYPE_CHECKING:
    from attrs import Attribute

__all__ = [
    "Condition",
    "Key",
    "Layer",
    "LineUp",
    "Place",
    "Placing",
    "Policy",
    "at_most",
    "by",
    "by_host",
    "by_label",
    "by_role",
    "chain",
    "count_at_least",
    "count_is",
    "count_multiple_of",
    "digest",
    "fill_gaps",
    "filter_groups",
    "multiple_of",
    "place",
    "shift",
    "tree",
]


@frozen
class LineUp:
    """The members of a world in rank order: the active ones first, then the reserves."""

    active: tuple[Member, ...]
    reserves: tuple[Member, ...] = ()


@frozen
class Policy:
    """A rank policy. The name tells the parameters too, so two policies with one name do the same."""

    name: str
    apply: Callable[[LineUp], LineUp] = field(eq=False, repr=False)


@frozen
class Key:
    """The group that a member belongs to, and the name of the rule for it."""

    name: str
    of: Callable[[Member], str] = field(eq=False, repr=False)


@frozen
class Condition:
    """A condition on the size of a group that may be active."""

    name: str
    holds: Callable[[int], bool] = field(eq=False, repr=False)


@frozen
class Place:
    """The place of one member. Ranks are dense over the world, and the active members come first."""

    rank: int
    active: bool


@frozen
class Placing:
    """The places that a policy gives to the members of a world."""

    places: Mapping[Node, Place]
    active_world_size: int

    @property
    def world_size(self) -> int:
        return len(self.places)


def place(policy: Policy, world: World) -> Placing:
    """Return the place of every member of the world. Raise ValueError if the policy lost or invented a member."""
    line = policy.apply(LineUp(world.members))
    everybody = (*line.active, *line.reserves)
    if sorted(each.node for each in everybody) != sorted(each.node for each in world.members):
        raise ValueError(f"{policy.name}: {len(everybody)} places for the {len(world.members)} members of the world")
    count = len(line.active)
    return Placing({each.node: Place(rank, rank < count) for rank, each in enumerate(everybody)}, count)


def digest(policy: Policy, placing: Placing) -> str:
    """Return the digest of a policy's name, parameters and result: 16 hexadecimal digits, the same on all ranks."""
    lines = [policy.name, *(f"{node} {each.rank} {each.active}" for node, each in placing.places.items())]
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


# --- groups of members -------------------------------------------------------------------------------------------------


def by_host() -> Key:
    return Key("host", lambda member: member.profile.host)


def by_role() -> Key:
    return Key("role", lambda member: member.profile.role)


def by_label(name: str) -> Key:
    """Group by the value of this label. Members without it are one group."""
    return Key(f"label {name}", lambda member: dict(member.profile.labels).get(name, ""))


def by(function: Callable[[Member], str]) -> Key:
    """Group by the user's own function, which must be pure."""
    return Key(function.__qualname__, function)


def count_is(number: int) -> Condition:
    return Condition(f"= {number}", lambda count: count == number)


def count_at_least(number: int) -> Condition:
    return Condition(f">= {number}", lambda count: count >= number)


def count_multiple_of(number: int) -> Condition:
    _positive("count_multiple_of", number)
    return Condition(f"% {number}", lambda count: count % number == 0)


# --- policies ---------------------------------------------------------------------------------------------------------


def chain(*policies: Policy) -> Policy:
    """Apply the policies one after the other. Without any, all members are active, and ranked in their order."""

    def apply(line: LineUp) -> LineUp:
        for policy in policies:
            line = policy.apply(line)
        return line

    return Policy(" + ".join(policy.name for policy in policies) or "by arrival", apply)


def shift() -> Policy:
    """Order by slot. The members after a lost rank move up."""
    return Policy("shift", lambda line: LineUp(_by_slot(line.active), _by_slot(line.reserves)))


def fill_gaps() -> Policy:
    """Give each member the rank that its slot names. Members whose slot lies beyond the end fill the gaps."""
    return Policy("fill gaps", lambda line: LineUp(_filled_gaps(line.active), line.reserves))


def at_most(number: int) -> Policy:
    """Keep at most this number of members active."""
    _positive("at_most", number)
    return Policy(f"at most {number}", lambda line: _cut(line, number))


def multiple_of(number: int) -> Policy:
    """Keep the largest multiple of this number active."""
    _positive("multiple_of", number)
    return Policy(f"multiple of {number}", lambda line: _cut(line, len(line.active) // number * number))


def filter_groups(key: Key, condition: Condition) -> Policy:
    """Make reserves of all groups that do not meet the condition: a host that lost a device, a rack that is too small."""

    def apply(line: LineUp) -> LineUp:
        fit = {name for name, group in _groups(line.active, key).items() if condition.holds(len(group))}
        kept = tuple(each for each in line.active if key.of(each) in fit)
        return LineUp(kept, (*(each for each in line.active if key.of(each) not in fit), *line.reserves))

    return Policy(f"groups by {key.name} {condition.name}", apply)


@frozen
class Layer:
    """One level of a topology. Its branches are the groups by `key`.

    A branch is active with `at_least` to `at_most` members. Members beyond that are its reserves, and take over inside it.
    With `back_fill`, a branch that misses members gets them from the reserves of the others.
    """

    key: Key
    at_least: int = field(default=1)
    at_most: int | None = field(default=None)
    back_fill: bool = False

    @at_least.validator
    def _somebody(self, attribute: Attribute[int], value: int) -> None:
        _positive("at_least", value)

    @at_most.validator
    def _not_below(self, attribute: Attribute[int | None], value: int | None) -> None:
        if value is not None and value < self.at_least:
            raise ValueError(f"at_most: {self.at_least} (at_least) or more, not {value}")

    @property
    def name(self) -> str:
        most = "" if self.at_most is None else self.at_most
        return f"{self.key.name} {self.at_least}..{most}{' back-filled' if self.back_fill else ''}"


def tree(*layers: Layer) -> Policy:
    """Order by a topology, its widest level first. The ranks of one branch are neighbours."""
    name = "tree of " + ", ".join(layer.name for layer in layers)

    def apply(line: LineUp) -> LineUp:
        grown = _grown(_by_slot(line.active), layers)
        return LineUp(grown.active, (*grown.reserves, *line.reserves))

    return Policy(name, apply)


def _positive(what: str, number: int) -> None:
    if number < 1:
        raise ValueError(f"{what}: at least 1, not {number}")


Branch = tuple[Member, ...]


Home: TypeAlias = tuple[int, int]
"""The round in which a rank's node came (0: with the first), and the rank's number then."""


def _home(member: Member) -> Home | None:
    rank, round = came_in(member.node.slot)
    return (round, int(rank)) if rank.isdecimal() else None


def _by_slot(members: Iterable[Member]) -> Branch:
    """Return the members by slot: numbers first, by their value, then those that came later; then the others, as they
    arrived."""
    return tuple(sorted(members, key=lambda each: (_home(each) is None, _home(each) or (0, 0))))


def _filled_gaps(members: Branch) -> Branch:
    homes = dict[int, Member]()
    for each in _by_slot(members):
        if (home := _home(each)) is not None and home[1] < len(members):
            homes.setdefault(home[1], each)
    rest = iter(_by_slot(each for each in members if each not in homes.values()))
    return tuple(homes[rank] if rank in homes else next(rest) for rank in range(len(members)))


def _cut(line: LineUp, number: int | None) -> LineUp:
    if number is None:
        return line
    return LineUp(line.active[:number], (*line.active[number:], *line.reserves))


def _groups(members: Iterable[Member], key: Key) -> Mapping[str, Branch]:
    """Return the groups, in the order of their first members."""
    groups = dict[str, Branch]()
    for member in members:
        name = key.of(member)
        groups[name] = (*groups.get(name, ()), member)
    return groups


def _grown(members: Branch, layers: tuple[Layer, ...]) -> LineUp:
    if not layers:
        return LineUp(members)
    layer, *rest = layers
    branches = [_cut(_grown(group, tuple(rest)), layer.at_most) for group in _groups(members, layer.key).values()]
    reserves = tuple(joined.from_iterable(branch.reserves for branch in branches))
    active, left = _working([branch.active for branch in branches], reserves, layer)
    return LineUp(tuple(joined.from_iterable(active)), left)


def _working(branches: list[Branch], pool: Branch, layer: Layer) -> tuple[list[Branch], Branch]:
    """Return the branches, empty if they are too small, and the members that are left.

    With back-fill, the branch that misses the fewest members is filled first. If the pool is too small for that, the
    smallest branch gives its members up to the pool.
    """
    short = sorted(
        (n for n, each in enumerate(branches) if len(each) < layer.at_least), key=lambda n: -len(branches[n])
    )
    while short:
        need = layer.at_least - len(branches[short[0]])
        if layer.back_fill and need <= len(pool):
            first = short.pop(0)
            branches[first], pool = (*branches[first], *pool[:need]), pool[need:]
        else:
            last = short.pop()
            branches[last], pool = (), (*pool, *branches[last])
    if layer.back_fill and layer.at_most is not None:
        return _topped_up(branches, pool, layer.at_most)
    return branches, pool


def _topped_up(branches: list[Branch], pool: Branch, most: int) -> tuple[list[Branch], Branch]:
    for place, branch in enumerate(branches):
        room = most - len(branch) if branch else 0
        branches[place], pool = (*branch, *pool[:room]), pool[room:]
    return branches, pool
