"""The symmetry reduction of the enumerator: states that differ only in the names of their nodes become one.

The slots are put in the order of their seats in the register, then in the order of their shapes: what can be said of a place
without names. Two slots may still be equal in both. Then two states remain that could be one, which only costs time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeAlias

from attrs import define, field
from enumerator import Order
from plainnode import renamed
from wholestate import ABSENT, CRASHED, Commit, LateWrite, Numbered, Place, State
from wholeworld import WholeWorld

from elastic.core.rendezvous import RendezvousState, Write
from elastic.core.values import evolve
from elastic.core.world import Node

Shape: TypeAlias = tuple[int | str, ...]
GONE: Shape = (CRASHED,)
NEVER: Shape = (ABSENT,)


@define
class Symmetry:
    """The symmetry reduction of one world: each slot may have the name of any other."""

    world: WholeWorld
    _shapes: dict[int, Shape] = field(factory=dict)
    _orders: dict[int, tuple[int, ...]] = field(factory=dict)
    _swapped: dict[tuple[int, int, Order], int] = field(factory=dict)

    def canonical(self, state: State) -> tuple[State, Order | None]:
        """Return the state with its slots in order, and the slot that is now at each place (None: all as before)."""
        lives = self.world.lives
        orders = self._orders.get(state.register) or self._arrived(state.register)
        shapes = [self._shapes.get(number) or self._shape(number) for number in state.places]
        if GONE in shapes:
            state = self._tidy(state)
        keys = [(order, *shapes[slot * lives : (slot + 1) * lives]) for slot, order in enumerate(orders)]
        order = tuple(sorted(range(len(keys)), key=keys.__getitem__))
        return (state, None) if order == self._as_it_was else (self._renamed(state, order), order)

    @cached_property
    def _as_it_was(self) -> Order:
        return tuple(range(self.world.small.nodes))

    def _arrived(self, number: int) -> tuple[int, ...]:
        """Return the place of each slot in the order of seats. A slot without a seat comes after all others."""
        register = self.world.registers[number]
        seated = [node.slot for node in register.seats] if register else []
        slots = [node.slot for node in self.world.names if node.incarnation == 1]
        orders = tuple(seated.index(slot) if slot in seated else len(slots) for slot in slots)
        self._orders[number] = orders
        return orders

    def _shape(self, number: int) -> Shape:
        """Return what can be said of a place without names."""
        place = self.world.places[number]
        shape = GONE if place.local < ABSENT else NEVER
        if place.local >= 0:
            local, behind = self.world.locals[place.local], place.behind
            under_way, edit = local.agenda.operation, local.ask.edit if isinstance(local.ask, Write) else None
            about = under_way.handler.__name__ if under_way else "", type(edit).__name__, local.group.phase.name
            more = len(local.agenda.queue), len(local.held.view.spans), place.succeeded, place.left, local.sent
            shape = 0, *about, behind.same, behind.rounds, behind.quorum, *more
        self._shapes[number] = shape
        return shape

    def _tidy(self, state: State) -> State:
        """Forget what was true of each node that is gone and has no write on its way."""
        world = self.world
        writers = {write.writer for write in world.late[state.late]}
        gone = world.gone(CRASHED)
        places = (
            gone if world.places[number].local < ABSENT and index not in writers else number
            for index, number in enumerate(state.places)
        )
        return state._replace(places=tuple(places))

    def _renamed(self, state: State, order: Order) -> State:
        world, lives = self.world, self.world.lives
        whose = [old * lives + life for old in order for life in range(lives)]
        called = {world.names[was]: world.names[now] for now, was in enumerate(whose)}
        register = self._swap(world.registers, state.register, order, called)
        writes = [
            LateWrite(whose.index(write.writer), self._swap(world.commits, write.commit, order, called))
            for write in world.late[state.late]
        ]
        places = [self._swap(world.places, state.places[was], order, called) for was in whose]
        return State(register, state.faults, state.failed, world.late.number(tuple(sorted(writes))), tuple(places))

    def _swap(self, table: Numbered[Any], number: int, order: Order, called: Mapping[Node, Node]) -> int:
        """Return the number of the same value with other names, by the mapping `called` that the order makes."""
        key = id(table), number, order
        known = self._swapped.get(key)
        if known is None:
            known = self._swapped[key] = table.number(self._called(table[number], order, called))
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
