"""A small world of whole nodes: the moves of each state, the states they lead to, and what no move may do.

The world works out once what a node at a place can do, and makes every move from that. The moves cover the order of turns,
the fate of each write and every fault, so nothing is left to chance. The world judges each write when it first meets it. In
each state it judges what only all places together show (S2, S9, S14b, S15, B4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from attrs import define, field
from plainnode import LIFE, ROUND, SOMEBODY, Behind, Local, local_key, plain, state_key
from seen import sometimes
from walk import News, Turn
from wholenode import Cost, Nodes, Step
from wholestate import (
    ABSENT,
    CRASHED,
    ENDED,
    FREE,
    MAY_BE_FREE,
    Commit,
    Effect,
    Known,
    LateWrite,
    Move,
    Numbered,
    Place,
    Small,
    State,
    itself,
)

from elastic.core.group import Phase
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
    verify,
    verify_step,
)
from elastic.core.values import evolve
from elastic.core.world import Ending, Node, Verdict, Why


@define
class WholeWorld:
    """One small world. Its tables give a number to each value that a state is made of."""

    small: Small
    turn: Turn = turn
    nodes: Nodes = field(init=False)
    lives: int = field(init=False)
    names: list[Node] = field(init=False)
    """The node at each place: slot by slot, incarnation by incarnation."""
    index: dict[Node, int] = field(init=False)
    registers: Numbered[RendezvousState | None] = field(factory=lambda: Numbered(state_key))
    locals: Numbered[Local] = field(factory=lambda: Numbered(local_key))
    places: Numbered[Place] = field(factory=lambda: Numbered(itself))
    commits: Numbered[Commit] = field(factory=lambda: Numbered(itself))
    late: Numbered[tuple[LateWrite, ...]] = field(factory=lambda: Numbered(itself))
    """Sets of late writes; only those that the present register would take."""
    seen: Counter[str] = field(factory=Counter)

    _known: dict[int, Known] = field(factory=dict)
    _faults: dict[int, tuple[tuple[Step, Effect], ...]] = field(factory=dict)
    _looked: dict[tuple[int, int], Effect] = field(factory=dict)
    _unsure: dict[int, Effect] = field(factory=dict)
    _committed: dict[tuple[int, int], int] = field(factory=dict)
    _behind: dict[tuple[int, int], int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        small = self.small
        self.nodes = Nodes(small.settings, self.turn, small.group)
        self.lives = 2 if small.restarts else 1
        slots = [chr(ord("a") + slot) for slot in range(small.nodes)]
        self.names = [Node(slot, 1 + life) for slot in slots for life in range(self.lives)]
        self.index = {node: index for index, node in enumerate(self.names)}
        self.registers.number(None)
        self.late.number(())

    def first(self) -> State:
        """Return the state in which every slot's first agent has just started and there is no register."""
        born = (self._born(node, register=0) if node.incarnation == 1 else self.gone(ABSENT) for node in self.names)
        return State(register=0, faults=self.small.faults, failed=False, late=0, places=tuple(born))

    def _born(self, node: Node, register: int) -> int:
        return self.places.number(Place(self.locals.number(self.nodes.born(node)), Behind(same=register == 0)))

    def gone(self, how: int) -> int:
        """Return the number of the place of a node that does not run: ABSENT, CRASHED or ENDED."""
        return self.places.number(Place(how))

    # --- moves

    def moves(self, state: State) -> Iterator[Move[State]]:
        """Yield every move out of the state. Raises Violation for a move that must not be possible."""
        for index, number in enumerate(state.places):
            local = self.places[number].local
            if local >= 0:
                yield from self._moves_of(state, index, number)
            elif local == ABSENT:
                yield from self._starts(state, index)
        for write in self.late[state.late]:
            landed = self._commits(state, write.commit)
            yield Move(f"{self.names[write.writer]}: its late write lands", Cost.LATE_WRITE, 0, landed)
        if state.faults and Cost.CANCEL in self.small.kinds and not self.closed(state):
            yield self._cancels(state)

    def closed(self, state: State) -> bool:
        register = self.register(state)
        return register is not None and register.closed is not None

    def register(self, state: State) -> RendezvousState | None:
        return self.registers[state.register]

    # --- goals

    def _living(self, state: State) -> list[tuple[Place, Known]]:
        return [(self.places[each], self.known(each)) for each in state.places if self.places[each].local >= 0]

    def is_over(self, state: State, more: int) -> bool:
        """Return True if the job is over: it is closed and every agent has ended, or too few agents are left.

        `more` agents count as if they lived.
        """
        living = self._living(state)
        if self.closed(state):
            return not living
        able = sum(known.phase is not Phase.LEAVING for _, known in living)
        return able + more < self.small.limits.min_nodes

    def rests(self, state: State) -> bool:
        """Return True if the round is complete, its members run in it, and every other agent waits for room."""
        register = self.register(state)
        if register is None or not register.complete or register.closed:
            return False
        living = self._living(state)
        running = {known.node for _, known in living if known.phase is Phase.RUNNING and known.ran == 0}
        return running >= set(register.participants) and all(_is_settled(register, *each) for each in living)

    def _moves_of(self, state: State, index: int, number: int) -> Iterator[Move[State]]:
        known, left = self.known(number), state.faults
        for step, effect in known.steps + self._paid(number) if left else known.steps:
            faults = self._price(state, step)
            if faults <= left and (not faults or step.cost in self.small.kinds):
                text = f"{known.node}: {step.text}"
                yield Move(text, step.cost, faults, self._goes(state, index, effect, faults))
        if known.asks:
            yield from self._writes(state, index, number, known.asks, known.said)
        elif known.looks:
            yield Move(f"{known.node}: looks", Cost.FREE, 0, self._looks(state, index))
        if left and Cost.CRASH in self.small.kinds:
            yield Move(f"{known.node}: crashes", Cost.CRASH, 1, self._goes(state, index, known.crashed, 1))

    def _price(self, state: State, step: Step) -> int:
        """Return how many faults the step takes of the budget. It is free to give up a node that is gone."""
        if not step.those:
            return 0 if step.cost in (Cost.FREE, Cost.SUCCESS) else 1
        there = sum(self.places[state.places[self.index[node]]].local >= 0 for node in step.those)
        return min(there, 1) if step.cost is Cost.OVERDUE else there

    def _writes(self, state: State, index: int, number: int, ask: Write, text: str) -> Iterator[Move[State]]:
        """Yield what may become of a write: refused, answered, answered in vain, or late."""
        kinds = self.small.kinds
        if not self.places[number].behind.same:
            yield Move(f"{text}, refused", Cost.FREE, 0, self._looks(state, index))
            return
        commit = self._commit(state.register, number, self.names[index], ask)
        landed = self._commits(state, commit)
        yield Move(text, Cost.FREE, 0, self._looks(landed, index))
        if state.faults and Cost.LOSE_REPLY in kinds:
            yield Move(f"{text}, answer lost", Cost.LOSE_REPLY, 1, self._is_unsure(landed, index))
        if state.faults and Cost.LATE_WRITE in kinds:
            late = self.late.number(tuple(sorted({*self.late[state.late], LateWrite(index, commit)})))
            under_way = state._replace(late=late)
            yield Move(f"{text}, late", Cost.LATE_WRITE, 1, self._is_unsure(under_way, index))

    def _starts(self, state: State, index: int) -> Iterator[Move[State]]:
        """Yield the start of a slot's next agent. It costs a fault while the agent before still runs."""
        faults = int(self.places[state.places[index - 1]].local >= 0)
        may = not faults or Cost.RESTART in self.small.kinds
        if may and faults <= state.faults and self._starts_left(state):
            who = self.names[index]
            born = Effect(self._born(who, state.register))
            yield Move(f"{who}: starts", Cost.RESTART, faults, self._goes(state, index, born, faults))

    def _starts_left(self, state: State) -> int:
        started = sum(self.places[number].local != ABSENT for number in state.places)
        return self.small.nodes + self.small.restarts - started

    def can_start(self, state: State) -> int:
        """Return how many agents can be started on slots where none runs."""
        locals = [self.places[number].local for number in state.places]
        absent = sum(now == ABSENT and before < ABSENT for before, now in pairwise(locals))
        return min(absent, self._starts_left(state))

    def _cancels(self, state: State) -> Move[State]:
        before = self.register(state) or blank(LIFE, self.small.limits)
        edit = Close(Verdict(Ending.CANCELLED, before.round, SOMEBODY, Why.ASKED))
        commit = self._commit(state.register, -1, SOMEBODY, Write(apply(before, edit, SOMEBODY), None, edit))
        landed = self._commits(state, commit)
        return Move("somebody closes the job", Cost.CANCEL, 1, landed._replace(faults=state.faults - 1))

    # --- what a move makes of a node

    def known(self, number: int) -> Known:
        """Return what a node at this place can do."""
        known = self._known.get(number)
        if known is None:
            place = self.places[number]
            local = self.locals[place.local]
            ask, group, under_way = local.ask, local.group, local.agenda.operation
            ran = place.behind.rounds + ROUND - group.world.round if group.world and group.running else None
            known = self._known[number] = Known(
                local.held.who.node,
                ask if isinstance(ask, Write) else None,
                f"{local.held.who.node}: {_spelled(ask)}" if isinstance(ask, Write) else "",
                isinstance(ask, Wait) and (ask.until <= 0 or not place.behind.same),
                self._steps(place, ran, FREE | MAY_BE_FREE),
                Effect(self.places.number(evolve(place, local=CRASHED, behind=Behind()))),
                group.phase,
                ran,
                under_way is not None and under_way.handler is join,
            )
        return known

    def _steps(self, place: Place, ran: int | None, kinds: frozenset[Cost]) -> tuple[tuple[Step, Effect], ...]:
        """`ran` is as in Known."""
        steps = self.nodes.steps(self.locals[place.local], kinds)
        return tuple((step, self._effect(place, ran, step)) for step in steps)

    def _paid(self, number: int) -> tuple[tuple[Step, Effect], ...]:
        """Return the steps that cost a fault, made when first asked for: most places are met with no fault left."""
        steps = self._faults.get(number)
        if steps is None:
            kinds = self.small.kinds - MAY_BE_FREE
            steps = self._faults[number] = self._steps(self.places[number], self.known(number).ran, kinds)
        return steps

    def _effect(self, place: Place, ran: int | None, step: Step) -> Effect:
        local = ENDED if step.after is None else self.locals.number(step.after)
        succeeded = place.succeeded or (News.SUCCEEDED in step.news and ran == 0)
        behind = Behind() if step.after is None else place.behind
        after = Place(local, behind, succeeded, place.left or News.LEFT in step.news)
        return Effect(self.places.number(after), News.FAILED in step.news and ran == 0, News.STARTED in step.news)

    def _goes(self, state: State, index: int, effect: Effect, faults: int = 0) -> State:
        """Return the state after the node's step. Raises Violation if its workers must not start."""
        if effect.starts:
            self._judge_start(state, index)
        register, left, failed, late, places = state
        moved = *places[:index], effect.place, *places[index + 1 :]
        return State(register, left - faults, failed or effect.fails, late, moved)

    def _looks(self, state: State, index: int) -> State:
        """Return the state after the node has read the register."""
        number = state.places[index]
        effect = self._looked.get((number, state.register))
        if effect is None:
            place = self.places[number]
            step = self.nodes.looks(self.locals[place.local], place.behind, self.register(state))
            effect = self._effect(evolve(place, behind=Behind()), None, step)
            self._looked[number, state.register] = effect
        return self._goes(state, index, effect)

    def _is_unsure(self, state: State, index: int) -> State:
        """Return the state after the node's write got no answer, which costs a fault."""
        number = state.places[index]
        effect = self._unsure.get(number)
        if effect is None:
            place = self.places[number]
            effect = self._effect(place, None, self.nodes.not_answered(self.locals[place.local]))
            self._unsure[number] = effect
        return self._goes(state, index, effect, 1)

    # --- what a move makes of the register

    def _commit(self, register: int, writer: int, who: Node, write: Write) -> int:
        """Return the number of what this write makes of the register. Raises Violation if it must not be written."""
        known = self._committed.get((register, writer))
        if known is None:
            before, after = self.registers[register] or blank(LIFE, self.small.limits), write.state
            assert not isinstance(write.edit, Restore), "nothing is lost here"
            verify(after)
            verify_step(before, after)
            commit = Commit(
                self.registers.number(plain(after)),
                after.round > before.round,
                before.quorum_at != after.quorum_at,
                frozenset(after.seats.keys() - before.seats.keys()),
                frozenset(set(after.those(Status.DONE)) - set(before.those(Status.DONE))),
                after.failures > before.failures,
            )
            known = self._committed[register, writer] = self.commits.number(commit)
            self.seen.update(sometimes(before, write.edit, who, after))
        return known

    def _commits(self, state: State, number: int) -> State:
        """Return the state after the register has changed and before any node reads it. Raises Violation."""
        commit = self.commits[number]
        for node in commit.seated:
            if self.places[state.places[self.index[node]]].left:
                raise Violation("S15", f"{node} is seated after it had left")
        for node in commit.done:
            if not self.places[state.places[self.index[node]]].succeeded:
                raise Violation("S14b", f"{node} is done in a round in which its workers have not succeeded")
        if commit.charged and not state.failed:
            raise Violation("B4", "a failure is counted, but no worker failed in that round")
        places = tuple([self._is_behind(place, number) for place in state.places])
        return State(commit.register, state.faults, state.failed and not commit.ends, 0, places)

    def _is_behind(self, number: int, why: int) -> int:
        """Return the place after this commit: what its node holds is older than the register now."""
        known = self._behind.get((number, why))
        if known is None:
            place, commit = self.places[number], self.commits[why]
            behind = place.behind
            if place.local >= 0:
                rounds = behind.rounds + commit.ends
                quorum = (behind.quorum or commit.quorum) and not rounds
                behind = (
                    Behind(False, rounds, quorum) if self.locals[place.local].held.view.state else Behind(same=False)
                )
            after = evolve(place, behind=behind, succeeded=place.succeeded and not commit.ends)
            known = self._behind[number, why] = self.places.number(after)
        return known

    def _judge_start(self, state: State, index: int) -> None:
        place = self.places[state.places[index]]
        world = self.locals[place.local].group.world
        assert world is not None
        members, mine = {member.node for member in world.members}, place.behind.rounds + ROUND - world.round
        for node, number in zip(self.names, state.places, strict=True):
            if self.places[number].local < 0 or (ran := self.known(number).ran) is None:
                continue
            group = self.locals[self.places[number].local].group
            if ran == mine and group.world and group.world.members != world.members:
                raise Violation("S2", f"{node} runs another world of this round")
            if ran > mine and node in members and group.phase is not Phase.LEAVING:
                raise Violation("S9", f"workers of {node} still run in an earlier round")


def _is_settled(register: RendezvousState, place: Place, known: Known) -> bool:
    seat = register.seats.get(known.node)
    if seat is None:
        return False
    if seat.status is Status.WAITING:
        return known.joins and known.node in register.redundancy_list
    return known.phase in (Phase.RUNNING, Phase.BARRIER) and place.behind.rounds == 0


def _spelled(write: Write) -> str:
    """Return the edit in words: its name, its cause and the nodes it names."""
    edit = write.edit
    what = [" ".join(map(str, value)) if isinstance(value, frozenset) else "" for value in _values(edit)]
    why = getattr(edit, "why", None)
    return " ".join(filter(None, [f"writes {type(edit).__name__}", why and why.value, *what]))


def _values(edit: object) -> list[object]:
    return [getattr(edit, name) for name in type(edit).__annotations__]
