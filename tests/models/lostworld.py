"""A small world of whole nodes whose store comes back empty, or with what it held when it was copied.

Nodes move as they do in a world without a loss (`wholeworld`), but things keep their names: a state is
the store and one place per node. Each write and each start is judged by the properties that the simulator judges by; and who
runs in a world that was lost while all were well, and to which nothing else is done, is stopped by nobody (R12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import define, field
from loststate import All, Late, Place, Shown, Then, canonical, local_key, normal, state_key, write_key
from plainnode import SOMEBODY, Local
from walk import News, Turn
from wholenode import Cost, Nodes, Step
from wholestate import ABSENT, CRASHED, ENDED, FREE, MAY_BE_FREE, Move, Small, State, Store, itself

from elastic.core.evolving import evolve
from elastic.core.group import Phase
from elastic.core.node import acknowledged
from elastic.core.properties.facts import Started, Wrote
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import (
    Close,
    RendezvousState,
    Restore,
    Status,
    Violation,
    Wait,
    Write,
    apply,
    blank,
    join,
    turn,
)
from elastic.core.world import Ending, Life, Node, Verdict, Why, World, WorldId

PLACES = 1
"""Where they begin in a state."""


@define
class LostWorld:
    small: Small
    turn: Turn = turn
    nodes: Nodes = field(init=False)
    names: list[Node] = field(init=False)
    index: dict[Node, int] = field(init=False)
    registers: Store[RendezvousState | None] = field(factory=lambda: Store(state_key))
    locals: Store[Local] = field(factory=lambda: Store(local_key))
    writes: Store[Write] = field(factory=lambda: Store(write_key))
    places: Store[Place] = field(factory=lambda: Store(itself))
    alls: Store[All] = field(factory=lambda: Store(itself))
    seen: Counter[str] = field(factory=Counter)

    _steps: dict[int, tuple[Step, ...]] = field(factory=dict)
    _looked: dict[tuple[int, Shown], Step] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        small = self.small
        self.nodes = Nodes(small.settings, self.turn, small.group, normal, lingers=True)
        self.names = [Node(chr(ord("a") + slot), 1) for slot in range(small.nodes)]
        self.index = {node: index for index, node in enumerate(self.names)}
        self.registers.number(None)

    def first(self) -> State:
        """All but the newcomers have just begun; there is no register."""
        begun = self.small.nodes - self.small.newcomers
        places = (self._born(node) if index < begun else Place(ABSENT) for index, node in enumerate(self.names))
        every = All(Shown(0), faults=self.small.faults, losses=self.small.losses)
        return self.alls.number(every), *map(self.places.number, places)

    def _born(self, node: Node) -> Place:
        return Place(self.locals.number(self.nodes.born(node, Life(node.slot))))

    def register(self, state: State) -> RendezvousState | None:
        return self.registers[self.alls[state[0]].shown.register]

    # --- moves

    def moves(self, state: State) -> Iterator[Move]:
        """Raises Violation, by a move that must not be."""
        every, kinds = self.alls[state[0]], self.small.kinds
        for index, number in enumerate(state[PLACES:]):
            place = self.places[number]
            if place.local >= 0:
                yield from self._moves_of(state, every, index, place)
            elif place.local == ABSENT:
                started = self._at(state, index, self._born(self.names[index]))
                yield Move(f"{self.names[index]}: starts", Cost.RESTART, 0, started)
        for late in every.late:
            if self._takes(every, self.writes[late.write]):
                arrived = self._with(state, evolve(every, late=tuple(each for each in every.late if each != late)))
                landed = self._lands(arrived, late.who, self.writes[late.write])
                yield Move(f"{self.names[late.who]}: its late write lands", Cost.LATE_WRITE, 0, landed)
        if every.losses:
            yield from self._losses(state, every)
        if every.faults and Cost.CANCEL in kinds and every.shown.here and not self._closed(every):
            yield Move("somebody closes the job", Cost.CANCEL, 1, self._cancelled(state, every))

    def _moves_of(self, state: State, every: All, index: int, place: Place) -> Iterator[Move]:
        node, local = self.names[index], self.locals[place.local]
        for step in self._steps_of(place.local):
            faults = self._price(state, step)
            payable = faults <= every.faults and (not faults or step.cost in self.small.kinds)
            if payable and (not step.beaten or self._is_acknowledged(every, local)):
                after = self._goes(state, index, self._then(place, step), faults)
                yield Move(f"{node}: {step.text}", step.cost, faults, after)
        match local.ask:
            case Write() as write:
                yield from self._tries(state, every, index, write)
            case Wait(token, until) if until <= 0 or not place.knows or token != self._token(every):
                yield Move(f"{node}: looks", Cost.FREE, 0, self._looks(state, index))
        if every.faults and Cost.CRASH in self.small.kinds:
            crashed = evolve(place, local=CRASHED, started=frozenset())
            yield Move(f"{node}: crashes", Cost.CRASH, 1, self._paid(self._at(state, index, crashed), 1))
        if every.faults and Cost.SLEEP in self.small.kinds and local.held.woke_at is None and not local.sent:
            woken = self._goes(state, index, self._then(place, self.nodes.wakes(local)), 1)
            yield Move(f"{node}: wakes", Cost.SLEEP, 1, woken)

    def _tries(self, state: State, every: All, index: int, write: Write) -> Iterator[Move]:
        kinds, text = self.small.kinds, f"{self.names[index]}: writes {type(write.edit).__name__}"
        if not self._takes(every, write):
            yield Move(f"{text}, refused", Cost.FREE, 0, self._looks(state, index))
            return
        landed = self._lands(state, index, write)
        yield Move(text, Cost.FREE, 0, self._looks(landed, index))
        if every.faults and Cost.LOSE_REPLY in kinds:
            yield Move(f"{text}, answer lost", Cost.LOSE_REPLY, 1, self._unsure(landed, index))
        if every.faults and Cost.LATE_WRITE in kinds:
            late = Late(index, self.writes.number(write))
            late_ones = tuple(sorted({*every.late, late}, key=lambda each: (each.who, each.write)))
            under_way = self._with(state, evolve(every, late=late_ones))
            yield Move(f"{text}, late", Cost.LATE_WRITE, 1, self._unsure(under_way, index))

    def _losses(self, state: State, every: All) -> Iterator[Move]:
        kinds, register = self.small.kinds, every.shown.register
        if Cost.EMPTY in kinds:
            yield Move("the store comes back empty", Cost.EMPTY, 1, self._lost(state, every, Shown(0)))
        if Cost.OLDER in kinds and every.copy:
            older = self._lost(state, every, Shown(every.copy, here=False))
            yield Move("the store comes back as it was copied", Cost.OLDER, 1, older)
        if Cost.OLDER in kinds and not every.copy and register and every.shown.here:
            yield Move("the store is copied", Cost.OLDER, 1, self._with(state, evolve(every, copy=register)))

    def can_start(self, state: State) -> int:
        return sum(self.places[number].local == ABSENT for number in state[PLACES:])

    # --- what a move makes of a node

    def _steps_of(self, number: int) -> tuple[Step, ...]:
        steps = self._steps.get(number)
        if steps is None:
            kinds = FREE | MAY_BE_FREE | self.small.kinds
            steps = self._steps[number] = tuple(self.nodes.steps(self.locals[number], kinds))
        return steps

    def _price(self, state: State, step: Step) -> int:
        if not step.those:
            return 0 if step.cost in FREE else 1
        there = sum(self.places[state[PLACES + self.index[node]]].local >= 0 for node in step.those)
        return min(there, 1) if step.cost is Cost.OVERDUE else there

    def _is_acknowledged(self, every: All, local: Local) -> bool:
        register = self.registers[every.shown.register]
        return acknowledged(register.life if register and every.shown.here else None, local.held.state)

    def _then(self, place: Place, step: Step) -> Then:
        group = self.locals[place.local].group
        ran = group.world.id if group.world and group.running else None
        after = evolve(
            place,
            local=ENDED if step.after is None else self.locals.number(step.after),
            succeeded=place.succeeded | {ran} if ran and News.SUCCEEDED in step.news else place.succeeded,
            left=place.left or News.LEFT in step.news,
        )
        return Then(step, after, ran if News.FAILED in step.news else None, News.STARTED in step.news)

    def _goes(self, state: State, index: int, then: Then, faults: int = 0) -> State:
        """The node is elsewhere now. Raises Violation."""
        before, after = self.places[state[PLACES + index]], then.after
        every = self.alls[state[0]]
        if then.starts:
            after = self._starts(state, index, then)
        if every.kept and then.step.cost is Cost.FREE and not faults and self._stops(before, after, every.kept):
            raise Violation("R12", f"all were well when the store was lost, but {self.names[index]} stops its workers")
        if then.failed:
            every = evolve(every, failed=every.failed | {then.failed})
        if then.step.cost is not Cost.FREE:
            every = evolve(every, kept=None)
        return self._paid(self._at(self._with(state, every), index, after), faults)

    def _stops(self, before: Place, after: Place, kept: WorldId) -> bool:
        group = self.locals[before.local].group
        ran = group.phase is Phase.RUNNING and _id(group.world) == kept
        return ran and (after.local < 0 or self.locals[after.local].group.phase is not Phase.RUNNING)

    def _looks(self, state: State, index: int) -> State:
        place, shown = self.places[state[PLACES + index]], self.alls[state[0]].shown
        step = self._looked.get((place.local, shown))
        if step is None:
            register = self.registers[shown.register]
            step = self._looked[place.local, shown] = self.nodes.sees(self.locals[place.local], register, shown.here)
        return self._goes(state, index, self._then(evolve(place, knows=True), step))

    def _unsure(self, state: State, index: int) -> State:
        place = self.places[state[PLACES + index]]
        step = self.nodes.not_answered(self.locals[place.local])
        return self._goes(state, index, self._then(place, evolve(step, cost=Cost.LOSE_REPLY)), 1)

    def _starts(self, state: State, index: int, then: Then) -> Place:
        """Judged by who runs what, and whose job it is. Raises Violation."""
        others = [self.places[number] for at, number in enumerate(state[PLACES:]) if at != index]
        there = [(place, self.locals[place.local]) for place in others if place.local >= 0]
        runs = {local.held.node: (local.group.world, place.job) for place, local in there if local.group.running}
        worlds = {world.id: world for world, _ in runs.values() if world}
        started = self.locals[then.after.local]
        world, held = started.group.world, started.held.state
        assert world is not None and held is not None
        judge = Judge(worlds=worlds, running={node: world for node, (world, _) in runs.items() if world})
        judge.jobs = {world.id.life: job for world, job in runs.values() if world} | {world.id.life: held.job}
        judge.leaving = {local.held.node for _, local in there if local.group.phase is Phase.LEAVING}
        judge.started = {(self.names[index], which) for which in then.after.started}
        judge.saw(Started(self.names[index], world))
        return evolve(then.after, started=then.after.started | {world.id}, job=held.job)

    # --- what a move makes of the store

    def _takes(self, every: All, write: Write) -> bool:
        """Compare and set; a copy takes nothing of the life that it is a copy of."""
        if write.token != self._token(every):
            return False
        register = self.registers[every.shown.register]
        return every.shown.here or register is None or write.state.life != register.life

    def _token(self, every: All) -> object:
        register = self.registers[every.shown.register]
        return register.token if register else None

    def _closed(self, every: All) -> bool:
        register = self.registers[every.shown.register]
        return register is not None and register.closed is not None

    def _lands(self, state: State, index: int, write: Write) -> State:
        """Raises Violation."""
        every = self.alls[state[0]]
        before, who = self.registers[every.shown.register], self.names[index] if index >= 0 else SOMEBODY
        self._judge_write(state, every, Wrote(who, before, write.edit, write.state, every.shown.here))
        number = self.registers.number(canonical(write.state))
        ordinary = not isinstance(write.edit, Restore)
        ended = before is None or (before.world_id == every.kept and write.state.world_id != every.kept)
        every = evolve(every, shown=Shown(number))
        every = evolve(every, kept=None) if ordinary and ended else every
        state = self._with(state, every)
        if not ordinary:
            self.seen["restored over what was there" if before else "restored"] += 1
            for at, number in enumerate(state[PLACES:]):
                state = self._at(state, at, evolve(self.places[number], left=False))
        return state

    def _judge_write(self, state: State, every: All, fact: Wrote) -> None:
        judge = Judge()
        for world in every.failed:
            judge.failed.setdefault(fact.after.job, set()).add(world)
        there = [(node, self.places[number]) for node, number in zip(self.names, state[PLACES:], strict=True)]
        judge.succeeded = {(node, world) for node, place in there for world in place.succeeded}
        judge.left = {node for node, place in there if place.left}
        judge.saw(fact)

    def _cancelled(self, state: State, every: All) -> State:
        before = self.registers[every.shown.register] or blank(Life("somebody"), self.small.limits)
        edit = Close(Verdict(Ending.CANCELLED, before.round, SOMEBODY, Why.ASKED))
        write = Write(apply(before, edit, SOMEBODY), None, edit)
        landed = self._lands(state, -1, write)
        return self._paid(self._with(landed, evolve(self.alls[landed[0]], kept=None)), 1)

    def _lost(self, state: State, every: All, shown: Shown) -> State:
        losses = every.losses - 1
        kept = (every.kept or self._well(state, every)) if self._is_ours(every, shown) else None
        every = evolve(every, shown=shown, losses=losses, copy=every.copy if losses else 0, kept=kept)
        state = self._with(state, every)
        for at, number in enumerate(state[PLACES:]):
            state = self._at(state, at, evolve(self.places[number], knows=False))
        self.seen["lost while all were well" if kept else "lost"] += 1
        return state

    def _is_ours(self, every: All, shown: Shown) -> bool:
        """A world of another job that the store was given back is not replaced, nor is a verdict taken back."""
        before, after = self.registers[every.shown.register], self.registers[shown.register]
        return before is None or after is None or (before.job == after.job and not after.closed)

    def _well(self, state: State, every: All) -> WorldId | None:
        """The world that stands, if all its members run in it and know it, and nobody else remembers anything."""
        register = self.registers[every.shown.register]
        if register is None or register.world_id is None or register.closed or every.late:
            return None
        places = [self.places[state[PLACES + self.index[node]]] for node in register.members]
        others = [each for each in self._living(state) if each.held.node not in register.members]
        well = all(self._runs(place, register) for place in places) and not any(each.held.state for each in others)
        return register.world_id if well else None

    def _runs(self, place: Place, register: RendezvousState) -> bool:
        local = self.locals[place.local] if place.local >= 0 else None
        if local is None or local.held.state is None or local.group.phase is not Phase.RUNNING:
            return False
        sure = local.held.unsure_at is None and local.held.woke_at is None and not local.held.found
        return sure and local.held.state.token == register.token and _id(local.group.world) == register.world_id

    # --- states

    def _with(self, state: State, every: All) -> State:
        return self.alls.number(every), *state[PLACES:]

    def _at(self, state: State, index: int, place: Place) -> State:
        at = PLACES + index
        return *state[:at], self.places.number(place), *state[at + 1 :]

    def _paid(self, state: State, faults: int) -> State:
        every = self.alls[state[0]]
        return self._with(state, evolve(every, faults=every.faults - faults, kept=None)) if faults else state

    # --- goals

    def _living(self, state: State) -> list[Local]:
        places = (self.places[number] for number in state[PLACES:])
        return [self.locals[place.local] for place in places if place.local >= 0]

    def is_over(self, state: State, more: int) -> bool:
        living = self._living(state)
        if self._closed(self.alls[state[0]]):
            return not living
        able = sum(local.group.phase not in (Phase.LEAVING, Phase.ENDED) for local in living)
        return able + more < self.small.limits.min_nodes

    def rests(self, state: State) -> bool:
        register, living = self.register(state), self._living(state)
        if register is None or not register.complete or register.closed or not self.alls[state[0]].shown.here:
            return False
        running = {each.held.node for each in living if _is_in(each, register, Phase.RUNNING)}
        return running >= set(register.participants) and all(_is_settled(each, register) for each in living)


def _id(world: World | None) -> WorldId | None:
    return world.id if world else None


def _is_in(local: Local, register: RendezvousState, *phases: Phase) -> bool:
    return local.group.phase in phases and _id(local.group.world) == register.world_id


def _is_settled(local: Local, register: RendezvousState) -> bool:
    seat, under_way = register.seats.get(local.held.node), local.agenda.operation
    if seat is None:
        return False
    if seat.status is Status.WAITING:
        waits = under_way is not None and under_way.handler is join
        return waits and local.held.node in register.redundancy_list
    return _is_in(local, register, Phase.RUNNING, Phase.BARRIER)
