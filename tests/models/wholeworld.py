"""A small world of whole nodes: which moves each of its states has, what they make of it, and what no move may do.

What a node does is worked out once, whoever is at the other places, and a move is made of what is known. The order in which
they take their turns, what becomes of a write, which faults happen: that is all in the moves, and nothing is left to chance.
Each write is judged when it is first met, and in each state what only all places together show (S2, S9, S14b, S15, B4).
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
    FIRST,
    FREE,
    MAY_BE_FREE,
    Commit,
    Known,
    Move,
    Place,
    Small,
    State,
    Store,
    Then,
    itself,
)

from elastic.core.evolving import evolve
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
from elastic.core.world import Ending, Node, Verdict, Why


@define
class WholeWorld:
    small: Small
    turn: Turn = turn
    nodes: Nodes = field(init=False)
    lives: int = field(init=False)
    names: list[Node] = field(init=False)
    """Whose the places of a state are: slot by slot, incarnation by incarnation."""
    index: dict[Node, int] = field(init=False)
    registers: Store[RendezvousState | None] = field(factory=lambda: Store(state_key))
    locals: Store[Local] = field(factory=lambda: Store(local_key))
    places: Store[Place] = field(factory=lambda: Store(itself))
    commits: Store[Commit] = field(factory=lambda: Store(itself))
    late: Store[tuple[tuple[int, int], ...]] = field(factory=lambda: Store(itself))
    """Sets of writes on their way, (whose, what it makes); only those that the register as it stands would take."""
    seen: Counter[str] = field(factory=Counter)

    _known: dict[int, Known] = field(factory=dict)
    _faults: dict[int, tuple[tuple[Step, Then], ...]] = field(factory=dict)
    _looked: dict[tuple[int, int], Then] = field(factory=dict)
    _unsure: dict[int, Then] = field(factory=dict)
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
        """Every slot's first agent has just begun; there is no register."""
        born = (self._born(node, register=0) if node.incarnation == 1 else self.gone(ABSENT) for node in self.names)
        return 0, self.small.faults, 0, 0, *born

    def _born(self, node: Node, register: int) -> int:
        return self.places.number(Place(self.locals.number(self.nodes.born(node)), Behind(same=register == 0)))

    def gone(self, how: int) -> int:
        return self.places.number(Place(how))

    # --- moves

    def moves(self, state: State) -> Iterator[Move]:
        """Raises Violation, by a move that must not be."""
        for index, number in enumerate(state[FIRST:]):
            local = self.places[number].local
            if local >= 0:
                yield from self._moves_of(state, index, number)
            elif local == ABSENT:
                yield from self._starts(state, index)
        for who, commit in self.late[state[3]]:
            landed = self._commits(state, commit)
            yield Move(f"{self.names[who]}: its late write lands", Cost.LATE_WRITE, 0, landed)
        if state[1] and Cost.CANCEL in self.small.kinds and not self.closed(state):
            yield self._cancels(state)

    def closed(self, state: State) -> bool:
        register = self.register(state)
        return register is not None and register.closed is not None

    def register(self, state: State) -> RendezvousState | None:
        return self.registers[state[0]]

    # --- goals

    def _living(self, state: State) -> list[tuple[Place, Known]]:
        return [(self.places[each], self.known(each)) for each in state[FIRST:] if self.places[each].local >= 0]

    def is_over(self, state: State, more: int) -> bool:
        """Closed, and everybody has been told. Or fewer are left than the job needs, with so many more, and nothing is
        claimed."""
        living = self._living(state)
        if self.closed(state):
            return not living
        able = sum(known.phase is not Phase.LEAVING for _, known in living)
        return able + more < self.small.limits.min_nodes

    def rests(self, state: State) -> bool:
        """One complete world; its members live and run in it; and whoever else lives waits for room, or for the end."""
        register = self.register(state)
        if register is None or not register.complete or register.closed:
            return False
        living = self._living(state)
        running = {known.node for _, known in living if known.phase is Phase.RUNNING and known.ran == 0}
        return running >= set(register.participants) and all(_is_settled(register, *each) for each in living)

    def _moves_of(self, state: State, index: int, number: int) -> Iterator[Move]:
        known, left = self.known(number), state[1]
        for step, then in known.steps + self._paid(number) if left else known.steps:
            faults = self._price(state, step)
            if faults <= left and (not faults or step.cost in self.small.kinds):
                text = f"{known.node}: {step.text}"
                yield Move(text, step.cost, faults, self._goes(state, index, then, faults))
        if known.asks:
            yield from self._writes(state, index, number, known.asks, known.said)
        elif known.looks:
            yield Move(f"{known.node}: looks", Cost.FREE, 0, self._looks(state, index))
        if left and Cost.CRASH in self.small.kinds:
            yield Move(f"{known.node}: crashes", Cost.CRASH, 1, self._goes(state, index, known.crashed, 1))

    def _price(self, state: State, step: Step) -> int:
        if not step.those:
            return 0 if step.cost in (Cost.FREE, Cost.SUCCESS) else 1
        there = sum(self.places[state[FIRST + self.index[node]]].local >= 0 for node in step.those)
        return min(there, 1) if step.cost is Cost.OVERDUE else there

    def _writes(self, state: State, index: int, number: int, ask: Write, text: str) -> Iterator[Move]:
        kinds = self.small.kinds
        if not self.places[number].behind.same:
            yield Move(f"{text}, refused", Cost.FREE, 0, self._looks(state, index))
            return
        commit = self._commit(state[0], number, self.names[index], ask)
        landed = self._commits(state, commit)
        yield Move(text, Cost.FREE, 0, self._looks(landed, index))
        if state[1] and Cost.LOSE_REPLY in kinds:
            yield Move(f"{text}, answer lost", Cost.LOSE_REPLY, 1, self._is_unsure(landed, index))
        if state[1] and Cost.LATE_WRITE in kinds:
            late = self.late.number(tuple(sorted({*self.late[state[3]], (index, commit)})))
            under_way = (*state[:3], late, *state[FIRST:])
            yield Move(f"{text}, late", Cost.LATE_WRITE, 1, self._is_unsure(under_way, index))

    def _starts(self, state: State, index: int) -> Iterator[Move]:
        faults = int(self.places[state[FIRST + index - 1]].local >= 0)
        may = not faults or Cost.RESTART in self.small.kinds
        if may and faults <= state[1] and self._starts_left(state):
            who = self.names[index]
            born = Then(self._born(who, state[0]))
            yield Move(f"{who}: starts", Cost.RESTART, faults, self._goes(state, index, born, faults))

    def _starts_left(self, state: State) -> int:
        started = sum(self.places[number].local != ABSENT for number in state[FIRST:])
        return self.small.nodes + self.small.restarts - started

    def can_start(self, state: State) -> int:
        """How many agents can be started where none is."""
        locals = [self.places[number].local for number in state[FIRST:]]
        absent = sum(now == ABSENT and before < ABSENT for before, now in pairwise(locals))
        return min(absent, self._starts_left(state))

    def _cancels(self, state: State) -> Move:
        before = self.registers[state[0]] or blank(LIFE, self.small.limits)
        edit = Close(Verdict(Ending.CANCELLED, before.round, SOMEBODY, Why.ASKED))
        commit = self._commit(state[0], -1, SOMEBODY, Write(apply(before, edit, SOMEBODY), None, edit))
        return Move("somebody closes the job", Cost.CANCEL, 1, _less(self._commits(state, commit), 1))

    # --- what a move makes of a node

    def known(self, number: int) -> Known:
        known = self._known.get(number)
        if known is None:
            place = self.places[number]
            local = self.locals[place.local]
            ask, group, under_way = local.ask, local.group, local.agenda.operation
            ran = place.behind.rounds + ROUND - group.world.round if group.world and group.running else None
            known = self._known[number] = Known(
                local.held.node,
                ask if isinstance(ask, Write) else None,
                f"{local.held.node}: {_spelled(ask)}" if isinstance(ask, Write) else "",
                isinstance(ask, Wait) and (ask.until <= 0 or not place.behind.same),
                self._steps(place, ran, FREE | MAY_BE_FREE),
                Then(self.places.number(evolve(place, local=CRASHED, behind=Behind()))),
                group.phase,
                ran,
                under_way is not None and under_way.handler is join,
            )
        return known

    def _steps(self, place: Place, ran: int | None, kinds: frozenset[Cost]) -> tuple[tuple[Step, Then], ...]:
        """`ran`: how many rounds ago the one began in which its workers live."""
        steps = self.nodes.steps(self.locals[place.local], kinds)
        return tuple((step, self._then(place, ran, step)) for step in steps)

    def _paid(self, number: int) -> tuple[tuple[Step, Then], ...]:
        """Its steps that cost something: most places are only met when nothing is left to pay with."""
        steps = self._faults.get(number)
        if steps is None:
            kinds = self.small.kinds - MAY_BE_FREE
            steps = self._faults[number] = self._steps(self.places[number], self.known(number).ran, kinds)
        return steps

    def _then(self, place: Place, ran: int | None, step: Step) -> Then:
        local = ENDED if step.after is None else self.locals.number(step.after)
        succeeded = place.succeeded or (News.SUCCEEDED in step.news and ran == 0)
        behind = Behind() if step.after is None else place.behind
        after = Place(local, behind, succeeded, place.left or News.LEFT in step.news)
        return Then(self.places.number(after), News.FAILED in step.news and ran == 0, News.STARTED in step.news)

    def _goes(self, state: State, index: int, then: Then, faults: int = 0) -> State:
        """The node is elsewhere now. Raises Violation."""
        if then.starts:
            self._judge_start(state, index)
        failed = 1 if then.fails else state[2]
        at = FIRST + index
        return state[0], state[1] - faults, failed, state[3], *state[FIRST:at], then.place, *state[at + 1 :]

    def _looks(self, state: State, index: int) -> State:
        key = state[FIRST + index], state[0]
        then = self._looked.get(key)
        if then is None:
            place, register = self.places[key[0]], self.registers[state[0]]
            step = self.nodes.looks(self.locals[place.local], place.behind, register)
            then = self._looked[key] = self._then(evolve(place, behind=Behind()), None, step)
        return self._goes(state, index, then)

    def _is_unsure(self, state: State, index: int) -> State:
        number = state[FIRST + index]
        then = self._unsure.get(number)
        if then is None:
            place = self.places[number]
            then = self._unsure[number] = self._then(place, None, self.nodes.not_answered(self.locals[place.local]))
        return self._goes(state, index, then, 1)

    # --- what a move makes of the register

    def _commit(self, register: int, writer: int, who: Node, write: Write) -> int:
        """What this write makes of the register as it stands. Raises Violation."""
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
        """The register is another one, and nobody knows yet. Raises Violation."""
        commit = self.commits[number]
        for node in commit.seated:
            if self.places[state[FIRST + self.index[node]]].left:
                raise Violation("S15", f"{node} is seated after it had left")
        for node in commit.done:
            if not self.places[state[FIRST + self.index[node]]].succeeded:
                raise Violation("S14b", f"{node} is done in a round in which its workers have not succeeded")
        if commit.charged and not state[2]:
            raise Violation("B4", "a failure is counted, but no worker failed in that round")
        places = (self._is_behind(place, number) for place in state[FIRST:])
        return commit.register, state[1], 0 if commit.ends else state[2], 0, *places

    def _is_behind(self, number: int, why: int) -> int:
        known = self._behind.get((number, why))
        if known is None:
            place, commit = self.places[number], self.commits[why]
            behind = place.behind
            if place.local >= 0:
                rounds = behind.rounds + commit.ends
                quorum = (behind.quorum or commit.quorum) and not rounds
                behind = Behind(False, rounds, quorum) if self.locals[place.local].held.state else Behind(same=False)
            after = evolve(place, behind=behind, succeeded=place.succeeded and not commit.ends)
            known = self._behind[number, why] = self.places.number(after)
        return known

    def _judge_start(self, state: State, index: int) -> None:
        place = self.places[state[FIRST + index]]
        world = self.locals[place.local].group.world
        assert world is not None
        members, mine = {member.node for member in world.members}, place.behind.rounds + ROUND - world.round
        for node, number in zip(self.names, state[FIRST:], strict=True):
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


def _less(state: State, faults: int) -> State:
    return state[0], state[1] - faults, *state[2:]


def _spelled(write: Write) -> str:
    edit = write.edit
    what = [" ".join(map(str, value)) if isinstance(value, frozenset) else "" for value in _values(edit)]
    why = getattr(edit, "why", None)
    return " ".join(filter(None, [f"writes {type(edit).__name__}", why and why.value, *what]))


def _values(edit: object) -> list[object]:
    return [getattr(edit, name) for name in type(edit).__annotations__]
