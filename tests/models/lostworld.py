"""A small world of whole nodes whose store comes back empty, or with what it held when it was copied.

Nodes move as they do in a world without a loss (`wholeworld`), but lives, versions and rounds keep their names. The judge of
the simulator judges each write and each start. The world itself judges R12: a store that is lost while all is well stops no
running worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import define, field
from loststate import (
    Common,
    Effect,
    LateWrite,
    Place,
    Shown,
    State,
    canonical,
    local_key,
    normal,
    state_key,
    write_key,
)
from plainnode import SOMEBODY, Local
from walk import News, Turn
from wholenode import Cost, Nodes, Step
from wholestate import ABSENT, CRASHED, ENDED, FREE, MAY_BE_FREE, Move, Numbered, Small, itself

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
from elastic.core.values import evolve
from elastic.core.world import Ending, Life, Node, Verdict, Why, World, WorldId


@define
class LostWorld:
    """One small world. Its tables give a number to each value that a state is made of."""

    small: Small
    turn: Turn = turn
    nodes: Nodes = field(init=False)
    names: list[Node] = field(init=False)
    index: dict[Node, int] = field(init=False)
    registers: Numbered[RendezvousState | None] = field(factory=lambda: Numbered(state_key))
    locals: Numbered[Local] = field(factory=lambda: Numbered(local_key))
    writes: Numbered[Write] = field(factory=lambda: Numbered(write_key))
    places: Numbered[Place] = field(factory=lambda: Numbered(itself))
    commons: Numbered[Common] = field(factory=lambda: Numbered(itself))
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
        """Return the state in which all nodes but the newcomers have just started and there is no register."""
        begun = self.small.nodes - self.small.newcomers
        places = (self._born(node) if index < begun else Place(ABSENT) for index, node in enumerate(self.names))
        common = Common(Shown(0), faults=self.small.faults, losses=self.small.losses)
        return State(self.commons.number(common), tuple(map(self.places.number, places)))

    def _born(self, node: Node) -> Place:
        return Place(self.locals.number(self.nodes.born(node, Life(node.slot))))

    def register(self, state: State) -> RendezvousState | None:
        return self._register(self._common(state))

    def _common(self, state: State) -> Common:
        return self.commons[state.common]

    def _register(self, common: Common) -> RendezvousState | None:
        return self.registers[common.shown.register]

    # --- moves

    def moves(self, state: State) -> Iterator[Move[State]]:
        """Yield every move out of the state. Raises Violation for a move that must not be possible."""
        common, kinds = self._common(state), self.small.kinds
        for index, number in enumerate(state.places):
            place = self.places[number]
            if place.local >= 0:
                yield from self._moves_of(state, common, index, place)
            elif place.local == ABSENT:
                started = self._at(state, index, self._born(self.names[index]))
                yield Move(f"{self.names[index]}: starts", Cost.RESTART, 0, started)
        for late in common.late:
            if self._takes(common, self.writes[late.write]):
                arrived = self._with(state, evolve(common, late=tuple(each for each in common.late if each != late)))
                landed = self._lands(arrived, late.writer, self.writes[late.write])
                yield Move(f"{self.names[late.writer]}: its late write lands", Cost.LATE_WRITE, 0, landed)
        if common.losses:
            yield from self._losses(state, common)
        if common.faults and Cost.CANCEL in kinds and common.shown.here and not self._closed(common):
            yield Move("somebody closes the job", Cost.CANCEL, 1, self._cancelled(state, common))

    def _moves_of(self, state: State, common: Common, index: int, place: Place) -> Iterator[Move[State]]:
        node, local = self.names[index], self.locals[place.local]
        for step in self._steps_of(place.local):
            faults = self._price(state, step)
            payable = faults <= common.faults and (not faults or step.cost in self.small.kinds)
            if payable and (not step.beaten or self._is_acknowledged(common, local)):
                after = self._goes(state, index, self._effect(place, step), faults)
                yield Move(f"{node}: {step.text}", step.cost, faults, after)
        match local.ask:
            case Write() as write:
                yield from self._writes(state, common, index, write)
            case Wait(token, until) if until <= 0 or not place.knows or token != self._token(common):
                yield Move(f"{node}: looks", Cost.FREE, 0, self._looks(state, index))
        if common.faults and Cost.CRASH in self.small.kinds:
            crashed = evolve(place, local=CRASHED, started=frozenset())
            yield Move(f"{node}: crashes", Cost.CRASH, 1, self._paid(self._at(state, index, crashed), 1))
        if common.faults and Cost.SLEEP in self.small.kinds and local.held.doubt.woke_at is None and not local.sent:
            woken = self._goes(state, index, self._effect(place, self.nodes.wakes(local)), 1)
            yield Move(f"{node}: wakes", Cost.SLEEP, 1, woken)

    def _writes(self, state: State, common: Common, index: int, write: Write) -> Iterator[Move[State]]:
        """Yield what may become of a write: refused, answered, answered in vain, or late."""
        kinds, text = self.small.kinds, f"{self.names[index]}: writes {type(write.edit).__name__}"
        if not self._takes(common, write):
            yield Move(f"{text}, refused", Cost.FREE, 0, self._looks(state, index))
            return
        landed = self._lands(state, index, write)
        yield Move(text, Cost.FREE, 0, self._looks(landed, index))
        if common.faults and Cost.LOSE_REPLY in kinds:
            yield Move(f"{text}, answer lost", Cost.LOSE_REPLY, 1, self._unsure(landed, index))
        if common.faults and Cost.LATE_WRITE in kinds:
            late = LateWrite(index, self.writes.number(write))
            under_way = self._with(state, evolve(common, late=tuple(sorted({*common.late, late}))))
            yield Move(f"{text}, late", Cost.LATE_WRITE, 1, self._unsure(under_way, index))

    def _losses(self, state: State, common: Common) -> Iterator[Move[State]]:
        """Yield the losses of the store, and the copy that a loss may bring back."""
        kinds, register = self.small.kinds, common.shown.register
        if Cost.EMPTY in kinds:
            yield Move("the store comes back empty", Cost.EMPTY, 1, self._lost(state, common, Shown(0)))
        if Cost.OLDER in kinds and common.copy:
            older = self._lost(state, common, Shown(common.copy, here=False))
            yield Move("the store comes back as it was copied", Cost.OLDER, 1, older)
        if Cost.OLDER in kinds and not common.copy and register and common.shown.here:
            yield Move("the store is copied", Cost.OLDER, 1, self._with(state, evolve(common, copy=register)))

    def can_start(self, state: State) -> int:
        """Return how many newcomers have not started yet."""
        return sum(self.places[number].local == ABSENT for number in state.places)

    # --- what a move makes of a node

    def _steps_of(self, number: int) -> tuple[Step, ...]:
        steps = self._steps.get(number)
        if steps is None:
            kinds = FREE | MAY_BE_FREE | self.small.kinds
            steps = self._steps[number] = tuple(self.nodes.steps(self.locals[number], kinds))
        return steps

    def _price(self, state: State, step: Step) -> int:
        """Return how many faults the step takes of the budget. It is free to give up a node that is gone."""
        if not step.those:
            return 0 if step.cost in FREE else 1
        there = sum(self.places[state.places[self.index[node]]].local >= 0 for node in step.those)
        return min(there, 1) if step.cost is Cost.OVERDUE else there

    def _is_acknowledged(self, common: Common, local: Local) -> bool:
        register = self._register(common)
        return acknowledged(register.life if register and common.shown.here else None, local.held.view.state)

    def _effect(self, place: Place, step: Step) -> Effect:
        group = self.locals[place.local].group
        ran = group.world.id if group.world and group.running else None
        after = evolve(
            place,
            local=ENDED if step.after is None else self.locals.number(step.after),
            succeeded=place.succeeded | {ran} if ran and News.SUCCEEDED in step.news else place.succeeded,
            left=place.left or News.LEFT in step.news,
        )
        return Effect(step, after, ran if News.FAILED in step.news else None, News.STARTED in step.news)

    def _goes(self, state: State, index: int, effect: Effect, faults: int = 0) -> State:
        """Return the state after the node's step. Raises Violation if the step must not be possible."""
        before, after = self.places[state.places[index]], effect.after
        common = self._common(state)
        if effect.starts:
            after = self._starts(state, index, effect)
        if common.kept and effect.step.cost is Cost.FREE and not faults and self._stops(before, after, common.kept):
            raise Violation("R12", f"all were well when the store was lost, but {self.names[index]} stops its workers")
        if effect.failed:
            common = evolve(common, failed=common.failed | {effect.failed})
        if effect.step.cost is not Cost.FREE:
            common = evolve(common, kept=None)
        return self._paid(self._at(self._with(state, common), index, after), faults)

    def _stops(self, before: Place, after: Place, kept: WorldId) -> bool:
        """Return True if the node's workers ran in the kept world and no longer do."""
        group = self.locals[before.local].group
        ran = group.phase is Phase.RUNNING and _id(group.world) == kept
        return ran and (after.local < 0 or self.locals[after.local].group.phase is not Phase.RUNNING)

    def _looks(self, state: State, index: int) -> State:
        place, shown = self.places[state.places[index]], self._common(state).shown
        step = self._looked.get((place.local, shown))
        if step is None:
            register = self.registers[shown.register]
            step = self._looked[place.local, shown] = self.nodes.sees(self.locals[place.local], register, shown.here)
        return self._goes(state, index, self._effect(evolve(place, knows=True), step))

    def _unsure(self, state: State, index: int) -> State:
        place = self.places[state.places[index]]
        step = self.nodes.not_answered(self.locals[place.local])
        return self._goes(state, index, self._effect(place, evolve(step, cost=Cost.LOSE_REPLY)), 1)

    def _starts(self, state: State, index: int, effect: Effect) -> Place:
        """Judged by who runs what, and whose job it is. Raises Violation."""
        others = [self.places[number] for at, number in enumerate(state.places) if at != index]
        there = [(place, self.locals[place.local]) for place in others if place.local >= 0]
        runs = {local.held.who.node: (local.group.world, place.job) for place, local in there if local.group.running}
        worlds = {world.id: world for world, _ in runs.values() if world}
        started = self.locals[effect.after.local]
        world, held = started.group.world, started.held.view.state
        assert world is not None and held is not None
        judge = Judge(worlds=worlds, running={node: world for node, (world, _) in runs.items() if world})
        judge.jobs = {world.id.life: job for world, job in runs.values() if world} | {world.id.life: held.job}
        judge.leaving = {local.held.who.node for _, local in there if local.group.phase is Phase.LEAVING}
        judge.started = {(self.names[index], which) for which in effect.after.started}
        judge.saw(Started(self.names[index], world))
        return evolve(effect.after, started=effect.after.started | {world.id}, job=held.job)

    # --- what a move makes of the store

    def _takes(self, common: Common, write: Write) -> bool:
        """Return True if the compare-and-set succeeds. A copy accepts no write in the life that it was copied from."""
        if write.token != self._token(common):
            return False
        register = self._register(common)
        return common.shown.here or register is None or write.state.life != register.life

    def _token(self, common: Common) -> object:
        register = self._register(common)
        return register.token if register else None

    def _closed(self, common: Common) -> bool:
        register = self._register(common)
        return register is not None and register.closed is not None

    def _lands(self, state: State, index: int, write: Write) -> State:
        """Return the state after a write has reached the register. Raises Violation if it must not be written."""
        common = self._common(state)
        before, who = self._register(common), self.names[index] if index >= 0 else SOMEBODY
        self._judge_write(state, common, Wrote(who, before, write.edit, write.state, common.shown.here))
        number = self.registers.number(canonical(write.state))
        ordinary = not isinstance(write.edit, Restore)
        ended = before is None or (before.world_id == common.kept and write.state.world_id != common.kept)
        common = evolve(common, shown=Shown(number))
        common = evolve(common, kept=None) if ordinary and ended else common
        state = self._with(state, common)
        if not ordinary:
            self.seen["restored over what was there" if before else "restored"] += 1
            places = (evolve(self.places[number], left=False) for number in state.places)
            state = State(state.common, tuple(map(self.places.number, places)))
        return state

    def _judge_write(self, state: State, common: Common, fact: Wrote) -> None:
        judge = Judge()
        for world in common.failed:
            judge.failed.setdefault(fact.after.job, set()).add(world)
        there = [(node, self.places[number]) for node, number in zip(self.names, state.places, strict=True)]
        judge.succeeded = {(node, world) for node, place in there for world in place.succeeded}
        judge.left = {node for node, place in there if place.left}
        judge.saw(fact)

    def _cancelled(self, state: State, common: Common) -> State:
        before = self._register(common) or blank(Life("somebody"), self.small.limits)
        edit = Close(Verdict(Ending.CANCELLED, before.round, SOMEBODY, Why.ASKED))
        write = Write(apply(before, edit, SOMEBODY), None, edit)
        landed = self._lands(state, -1, write)
        return self._paid(self._with(landed, evolve(self._common(landed), kept=None)), 1)

    def _lost(self, state: State, common: Common, shown: Shown) -> State:
        losses = common.losses - 1
        kept = (common.kept or self._well(state, common)) if self._is_ours(common, shown) else None
        common = evolve(common, shown=shown, losses=losses, copy=common.copy if losses else 0, kept=kept)
        self.seen["lost while all were well" if kept else "lost"] += 1
        places = (evolve(self.places[number], knows=False) for number in state.places)
        return State(self.commons.number(common), tuple(map(self.places.number, places)))

    def _is_ours(self, common: Common, shown: Shown) -> bool:
        """Return True if what the store now shows may be replaced: it is of the same job, and no verdict."""
        before, after = self._register(common), self.registers[shown.register]
        return before is None or after is None or (before.job == after.job and not after.closed)

    def _well(self, state: State, common: Common) -> WorldId | None:
        """Return the current world, if all its members run in it and know it, and no other node holds any state."""
        register = self._register(common)
        if register is None or register.world_id is None or register.closed or common.late:
            return None
        places = [self.places[state.places[self.index[node]]] for node in register.members]
        others = [each for each in self._living(state) if each.held.who.node not in register.members]
        well = all(self._runs(place, register) for place in places) and not any(each.held.view.state for each in others)
        return register.world_id if well else None

    def _runs(self, place: Place, register: RendezvousState) -> bool:
        local = self.locals[place.local] if place.local >= 0 else None
        if local is None or local.held.view.state is None or local.group.phase is not Phase.RUNNING:
            return False
        sure = local.held.doubt.unsure_at is None and local.held.doubt.woke_at is None and not local.held.found
        return sure and local.held.view.state.token == register.token and _id(local.group.world) == register.world_id

    # --- states

    def _with(self, state: State, common: Common) -> State:
        return State(self.commons.number(common), state.places)

    def _at(self, state: State, index: int, place: Place) -> State:
        before = state.places
        return State(state.common, (*before[:index], self.places.number(place), *before[index + 1 :]))

    def _paid(self, state: State, faults: int) -> State:
        """Return the state with so many faults less. After a fault no world needs to be kept."""
        common = self._common(state)
        return self._with(state, evolve(common, faults=common.faults - faults, kept=None)) if faults else state

    # --- goals

    def _living(self, state: State) -> list[Local]:
        places = (self.places[number] for number in state.places)
        return [self.locals[place.local] for place in places if place.local >= 0]

    def is_over(self, state: State, more: int) -> bool:
        """Return True if the job is over: it is closed and every agent has ended, or too few agents are left.

        `more` agents count as if they lived.
        """
        living = self._living(state)
        if self._closed(self._common(state)):
            return not living
        able = sum(local.group.phase not in (Phase.LEAVING, Phase.ENDED) for local in living)
        return able + more < self.small.limits.min_nodes

    def rests(self, state: State) -> bool:
        """Return True if the round is complete, its members run in it, and every other agent waits for room."""
        register, living = self.register(state), self._living(state)
        if register is None or not register.complete or register.closed or not self._common(state).shown.here:
            return False
        running = {each.held.who.node for each in living if _is_in(each, register, Phase.RUNNING)}
        return running >= set(register.participants) and all(_is_settled(each, register) for each in living)


def _id(world: World | None) -> WorldId | None:
    return world.id if world else None


def _is_in(local: Local, register: RendezvousState, *phases: Phase) -> bool:
    return local.group.phase in phases and _id(local.group.world) == register.world_id


def _is_settled(local: Local, register: RendezvousState) -> bool:
    seat, under_way = register.seats.get(local.held.who.node), local.agenda.operation
    if seat is None:
        return False
    if seat.status is Status.WAITING:
        waits = under_way is not None and under_way.handler is join
        return waits and local.held.who.node in register.redundancy_list
    return _is_in(local, register, Phase.RUNNING, Phase.BARRIER)
