"""States that differ only in what the nodes are called are one: each is taken by the names that its own order gives.

The slots go by the order in which they sit in the register, then by what can be said of them without names. That is not
always one order, and then two states remain that could be one: no harm, only work.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeAlias

from attrs import define, field
from enumerator import Order
from plainnode import renamed
from wholestate import ABSENT, CRASHED, FIRST, Commit, Place, State, Store
from wholeworld import WholeWorld

from elastic.core.evolving import evolve
from elastic.core.rendezvous import RendezvousState, Write
from elastic.core.world import Node

Shape: TypeAlias = tuple[int | str, ...]
GONE: Shape = (CRASHED,)
NEVER: Shape = (ABSENT,)


@define
class SameNames:
    world: WholeWorld
    _shapes: dict[int, Shape] = field(factory=dict)
    _orders: dict[int, tuple[int, ...]] = field(factory=dict)
    _swapped: dict[tuple[int, int, Order], int] = field(factory=dict)

    def plain(self, state: State) -> tuple[State, Order | None]:
        """The state with its own names, and which slot is now where (None: as it was)."""
        lives = self.world.lives
        orders = self._orders.get(state[0]) or self._arrived(state[0])
        shapes = [self._shapes.get(number) or self._shape(number) for number in state[FIRST:]]
        if GONE in shapes:
            state = self._tidy(state)
        keys = [(order, *shapes[slot * lives : (slot + 1) * lives]) for slot, order in enumerate(orders)]
        order = tuple(sorted(range(len(keys)), key=keys.__getitem__))
        return (state, None) if order == self._as_it_was else (self._renamed(state, order), order)

    @cached_property
    def _as_it_was(self) -> Order:
        return tuple(range(self.world.small.nodes))

    def _arrived(self, number: int) -> tuple[int, ...]:
        """For each slot, its order in the register; behind all others for those that have no seat."""
        register = self.world.registers[number]
        seated = [node.slot for node in register.seats] if register else []
        slots = [node.slot for node in self.world.names if node.incarnation == 1]
        orders = tuple(seated.index(slot) if slot in seated else len(slots) for slot in slots)
        self._orders[number] = orders
        return orders

    def _shape(self, number: int) -> Shape:
        """What of a place has no names in it."""
        place = self.world.places[number]
        shape = GONE if place.local < ABSENT else NEVER
        if place.local >= 0:
            local, behind = self.world.locals[place.local], place.behind
            under_way, edit = local.agenda.operation, local.ask.edit if isinstance(local.ask, Write) else None
            about = under_way.handler.__name__ if under_way else "", type(edit).__name__, local.group.phase.name
            more = len(local.agenda.queue), len(local.held.spans), place.succeeded, place.left, local.sent
            shape = 0, *about, behind.same, behind.rounds, behind.quorum, *more
        self._shapes[number] = shape
        return shape

    def _tidy(self, state: State) -> State:
        """What was true of nodes that are gone, and whose writes have all come, matters no more."""
        world = self.world
        writers = {who for who, _ in world.late[state[3]]}
        gone = world.gone(CRASHED)
        places = (
            gone if world.places[number].local < ABSENT and index not in writers else number
            for index, number in enumerate(state[FIRST:])
        )
        return *state[:FIRST], *places

    def _renamed(self, state: State, order: Order) -> State:
        world, lives = self.world, self.world.lives
        whose = [old * lives + life for old in order for life in range(lives)]
        called = {world.names[was]: world.names[now] for now, was in enumerate(whose)}
        register = self._swap(world.registers, state[0], order, called)
        writes = [
            (whose.index(who), self._swap(world.commits, commit, order, called)) for who, commit in world.late[state[3]]
        ]
        places = [self._swap(world.places, state[FIRST + was], order, called) for was in whose]
        return register, state[1], state[2], world.late.number(tuple(sorted(writes))), *places

    def _swap(self, store: Store[Any], number: int, order: Order, called: Mapping[Node, Node]) -> int:
        key = id(store), number, order
        known = self._swapped.get(key)
        if known is None:
            known = self._swapped[key] = store.number(self._called(store[number], order, called))
        return known

    def _called(
        self, value: RendezvousState | Commit | Place | None, order: Order, called: Mapping[Node, Node]
    ) -> RendezvousState | Commit | Place | None:
        world = self.world
        match value:
            case RendezvousState():
                return renamed(value, called)
            case Commit():
                register = self._swap(world.registers, value.register, order, called)
                seated, done = (frozenset(called[node] for node in nodes) for nodes in (value.seated, value.done))
                return evolve(value, register=register, seated=seated, done=done)
            case Place(local) if local >= 0:
                return evolve(value, local=world.locals.number(world.nodes.renamed(world.locals[local], called)))
            case _:
                return value
