"""The exhaustive enumerator over a small world of calls: all orders of its threads' steps, with all faults of its budget.

The key of a world leaves out versions, arrival numbers and counters. So two worlds that can only do the same are one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable

from attrs import define, field

from elastic.core.rendezvous import RendezvousState
from elastic.core.rendezvous.agenda import Request
from elastic.core.sim.calls import laws
from elastic.core.sim.calls.call_world import Rank, Shape, World
from elastic.core.sim.calls.effects import beginning, step
from elastic.core.sim.calls.moves import Move, faults, prompt, timed


@define
class Explored:
    """The result of a search."""

    worlds: int = 0
    steps: int = 0
    ends: int = 0
    seen: Counter[str] = field(factory=Counter)


def explored(shape: Shape, worlds_max: int = 1_000_000) -> Explored:
    """Visit every world. Raises what a step breaks, or I16 for a world from which no end can be reached."""
    told, first = Explored(), beginning(shape)
    number = {key(first): 0}
    before: list[list[int]] = [[]]
    todo, ends = deque([(0, first)]), list[int]()
    while todo:
        place, world = todo.popleft()
        moves = possible(world)
        if not moves:
            laws.ended(world)
            ends.append(place)
        for move in moves:
            after = step(world, move, lambda word: told.seen.update((word,)))
            told.steps += 1
            which = number.setdefault(key(after), len(before))
            if which == len(before):
                assert which < worlds_max, "the world is not as small as it was"
                before.append([])
                todo.append((which, after))
            before[which].append(place)
    told.worlds, told.ends = len(before), len(ends)
    assert reaching(ends, before) == len(before), "I16: from some world no end can be reached"
    return told


def possible(world: World) -> list[Move]:
    """Return the moves of a world. Time passes only when no thread can run."""
    threads = prompt(world)
    return [*faults(world), *(threads or timed(world))]


def reaching(ends: list[int], before: list[list[int]]) -> int:
    """Return how many worlds can reach an end. `before` has the worlds that lead to each."""
    todo, seen = [*ends], {*ends}
    while todo:
        more = {place for place in before[todo.pop()] if place not in seen}
        seen |= more
        todo += more
    return len(seen)


def key(world: World) -> Hashable:
    """Return what the rules can tell apart."""
    ranks = tuple(map(_of_rank, world.ranks))
    registers = _of_register(world.register), _of_register(world.forgotten)
    return registers, ranks, world.budget, world.unseated, world.clean, min(world.rings, 1)


def _of_register(register: RendezvousState | None) -> Hashable:
    if register is None:
        return None
    seats = tuple((node, seat.status) for node, seat in register.seats.items())
    rules = register.target, register.quorum_at is None, register.failures, register.ended, register.policy
    return register.life.epoch, register.round, register.complete, register.closed, seats, rules


def _of_rank(rank: Rank) -> Hashable:
    agenda, held = rank.agenda, rank.held
    about = agenda.operation and (agenda.operation.handler.__name__, agenda.operation.deadline, agenda.operation.ending)
    queue = tuple((each.handler.__name__, each.ending) for each in agenda.queue if isinstance(each, Request))
    memory = held.who.nonce, held.past.mine, held.past.ran, held.past.done_in, held.past.reserve_in
    threads = rank.main, rank.page, rank.signalled, rank.aborts, rank.abort_hangs, rank.starved, rank.cut_off
    late = rank.under_way and (rank.under_way[0].token, _of_register(rank.under_way[0].state))
    answers = rank.abort_failed, rank.shown_part, rank.unheard, late, _of_register(rank.remembers), held.doubt.owed
    processes = rank.alive, rank.monitor, rank.called_in, rank.limited, rank.passed, rank.returned
    return rank.node, rank.call, rank.inbox, about, queue, agenda.watching, memory, threads, answers, processes
