"""The law of proposals (O16): when a node proposes, when it writes for others and what, and how long it waits in between.

The judge works out by the register that a node holds how many have the same to write, and whose number is the last. It
remembers itself what the store has answered to each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field

from ..properties.law import Law, Strength
from ..properties.register_laws import NOT_TAKEN
from ..rendezvous import (
    Arrive,
    Counted,
    Done,
    Gather,
    Held,
    Proposal,
    Proposals,
    Propose,
    RendezvousState,
    Status,
    Together,
    Token,
    Wait,
    Write,
)
from ..rendezvous.context import Fact
from ..violation import check
from ..world import Node

O16 = Law(
    "O16",
    "A node proposes where more than `helping_above` nodes have the same to write, and nowhere else; it proposes the same "
    "once, unless the store has not answered, or it slept since; it writes for all as the last that is awaited, or after "
    "its patience, what it has read of the others in this version; and it waits for others no longer than twice "
    "`helping_patience`.",
    "a node may propose, or has proposed and waits",
)
SLACK_S = 1e-6
QUORATE = 8
"""While a last call goes on, the patience of a node that enters is this part of its length."""


@define
class Mine:
    """Holds what a node has proposed last, when the store answered to it, and as which of its kind (0: no answer yet)."""

    proposal: Proposal
    at: float
    number: int = 0
    others: tuple[Token, Mapping[Node, Proposal]] | None = None
    """Holds the version in which it has read the proposals of the others, and these."""
    slept: bool = False
    """It slept since: if it then finds another register, it knows nothing of its proposal."""


@define
class Proposing:
    """Remembers what each node has proposed."""

    strength: Strength = field(factory=Strength)
    of: dict[Node, Mine] = field(factory=dict)

    def answers(self, held: Held, answer: Counted | Proposals, now: float) -> None:
        """Note what the store answers to a node about proposals."""
        mine = self.of.get(held.who.node)
        if mine is None or held.token is None:
            return
        if isinstance(answer, Counted):
            mine.at, mine.number = now, answer.count
        else:
            mine.others = held.token, answer.of

    def slept(self, node: Node) -> None:
        """Let this node propose anew what it has proposed, or act by it: it slept, and may know nothing of it."""
        if (mine := self.of.get(node)) is not None:
            mine.slept = True

    def asks(self, held: Held, question: Propose | Gather | Write, now: float) -> None:
        """Judge a question. Raises Violation."""
        state = held.view.state
        if state is None or (isinstance(question, Write) and not isinstance(question.edit, Arrive | Done | Together)):
            return
        self.strength.armed["O16"] += 1
        check(("O16", f"{held.who.node} {what}") for what in self._asks(held, state, question, now))
        if isinstance(question, Propose):
            self.of[held.who.node] = Mine(question.proposal, now)

    def waits(self, held: Held, wait: Wait, now: float) -> None:
        """Judge how long a node waits that has proposed. Raises Violation."""
        mine, state = self.of.get(held.who.node), held.view.state
        if mine is None or not mine.number or state is None or not _stands(mine.proposal, held, state):
            return
        self.strength.armed["O16"] += 1
        until = mine.at + 2 * _patience(held, state, mine.proposal) + SLACK_S
        if wait.until > until or (wait.until > now and _is_last(held, state, mine)):
            last = f"number {mine.number} since {mine.at:g}"
            check([("O16", f"{held.who.node} waits until {wait.until:g} for what it has proposed, {last}")])

    def _asks(
        self, held: Held, state: RendezvousState, question: Propose | Gather | Write, now: float
    ) -> Iterator[str]:
        mine = self.of.get(held.who.node)
        if mine is not None and mine.proposal.era != state.era:
            mine = None
        if isinstance(question, Propose):
            yield from _of_proposal(held, state, mine, question.proposal)
        elif isinstance(question, Write) and not isinstance(question.edit, Together):
            if _many(held, state) or (mine is not None and mine.proposal.enters and not state.complete):
                yield f"writes {question.edit} alone, which it may propose or has proposed"
        elif mine is None:
            yield "acts for others, and has proposed nothing"
        else:
            yield from _of_many(held, state, mine, question, now)


def _of_proposal(held: Held, state: RendezvousState, mine: Mine | None, proposal: Proposal) -> Iterator[str]:
    """Judge what a node proposes: what it would write itself, in this era, if others have the same to write. A node that has
    proposed to enter in this era does so again when it has something else to say of itself."""
    enters, edit = held.who.node not in state.seats, proposal.edit
    if (proposal.era, proposal.enters) != (state.era, enters) or (isinstance(edit, Done) and edit.round != state.round):
        yield f"proposes what would not count, {proposal}"
    if not (_many(held, state) or (enters and mine is not None)):
        yield f"proposes {edit}, and is to write it alone"
    if mine is not None and mine.proposal == proposal and mine.number and not mine.slept:
        yield f"proposes {edit} again, to which the store has answered"


def _of_many(held: Held, state: RendezvousState, mine: Mine, question: Gather | Write, now: float) -> Iterator[str]:
    """Judge a node that reads what others propose, or writes it."""
    if not _is_last(held, state, mine) and now - mine.at < _patience(held, state, mine.proposal) - SLACK_S:
        yield f"acts for all {now - mine.at:g} s after it has proposed, as number {mine.number}"
    if isinstance(question, Gather):
        whose = (set[Node](), state.era) if mine.proposal.enters else (set(_alike(held, state)), None)
        if (set(question.nodes), question.entering) != whose:
            yield "does not read what those propose that have the same to write"
        return
    token, others = mine.others or (None, {})
    if question.edit != Together({**others, held.who.node: mine.proposal}) or token != state.token:
        yield "does not write what the others and it propose, as it has read in this version"


def _alike(held: Held, state: RendezvousState) -> tuple[Node, ...]:
    """Return the nodes that have a seat as this one has."""
    mine = state.seats.get(held.who.node)
    return tuple(node for node, seat in state.seats.items() if mine is not None and seat.status is mine.status)


def _many(held: Held, state: RendezvousState) -> bool:
    """Return True if more than `helping_above` nodes may have the same to write: one of them writes for all. A node does not
    propose to enter while a write of its own may still land."""
    settings = held.who.settings
    if held.who.node in state.seats:
        return len(_alike(held, state)) > settings.helping_above
    owes = held.doubt.owed is not None and held.doubt.owed.version >= state.version
    if state.complete or owes or _entrants(held, state) <= settings.helping_above:
        return False
    first = None if state.ended else settings.first_call_timeout
    last_call = settings.last_call_timeout if first is None else first
    return state.quorum_at is None or last_call >= 2 * settings.helping_patience


def _are(state: RendezvousState, *statuses: Status) -> int:
    return sum(seat.status in statuses for seat in state.seats.values())


def _entrants(held: Held, state: RendezvousState) -> int:
    """Return how many may be about to enter: what a first target lacks, or those for whom there is room, of a party."""
    if state.ended is None and state.target:
        return max(state.target - _are(state, Status.IN), 0)
    room = max(state.limits.max_nodes - len(state.seats) + _are(state, *NOT_TAKEN), 0)
    return min(room, held.who.profile.party.size) if held.who.profile.party else room


def _is_last(held: Held, state: RendezvousState, mine: Mine) -> bool:
    """Return True if the proposals are as many as are awaited."""
    if not mine.proposal.enters:
        works = _are(state, Status.IN, Status.DONE, Status.GONE)
        return mine.number >= (works if state.complete else state.target)
    lacks = state.limits.min_nodes - _are(state, Status.IN)
    return bool(mine.number) and (mine.number >= _entrants(held, state) or mine.number >= lacks > 0)


def _patience(held: Held, state: RendezvousState, proposal: Proposal) -> float:
    """Return the shortest patience of a node that has proposed this; the longest is twice that."""
    span = held.who.settings.helping_patience
    return span / QUORATE if proposal.enters and state.quorum_at is not None else span


def _stands(proposal: Proposal, held: Held, state: RendezvousState) -> bool:
    """Return True if the node still wants what it has proposed, and nothing but the others can keep it waiting."""
    if held.found is not None or proposal.era != state.era or not _many(held, state):
        return False
    seat, edit = state.seats.get(held.who.node), proposal.edit
    status = seat.status if seat is not None else None
    if isinstance(edit, Done):
        return status is Status.IN
    is_asked = status is None if proposal.enters else status is Status.EXPECTED
    is_kept_out = not held.view.spans.keys().isdisjoint((Fact.LATER, Fact.BARRED))
    return is_asked and edit.profile == held.who.profile and not is_kept_out
