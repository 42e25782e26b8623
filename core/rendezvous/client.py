"""The client of the rendezvous: the loop of a node, pure. What came in becomes what is asked next.

`step` remembers the input (`memory`), takes the next item of the agenda when nothing is under way, and turns (`turn`).
Production, the simulator, the enumerators, the replay of traces and the tests all drive this one function; the package's
docstring says how. A client knows no thread, no clock and no chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TypeAlias, assert_never

from ..backoff import pause_s
from ..values import evolve, frozen
from .actions import Outcome
from .agenda import Agenda, answered, begun, resumed, submitted
from .context import Held, Operation
from .errands import Errand, Errands, failed, forgotten, moved, next_due, succeeded
from .exchange import (
    Advance,
    Ask,
    Counted,
    Did,
    Draw,
    Drawn,
    Heartbeats,
    Idle,
    Input,
    Linked,
    Look,
    Missed,
    NoState,
    Notice,
    Passed,
    Pause,
    Proposals,
    Pushed,
    Question,
    Restored,
    Seen,
    Shown,
    Silent,
    Standstill,
    StoreBack,
    StoreSilent,
    Submitted,
    Told,
    Unknown,
    Woke,
)
from .memory import (
    advanced,
    gathered,
    heard,
    proposed,
    saw,
    silent,
    stands_still,
    told_by_link,
    unanswered,
    unproposed,
    unreadable,
    unserved,
    woke,
)
from .state import RendezvousState
from .turn import Decision, Gather, Observe, Propose, Raise, Return, Wait, Write
from .turn import turn as this_turn

FIRST_PAUSE_S = 0.05
"""After the first question without an answer; each further pause is twice as long, up to a heartbeat's interval."""
TOLD_AT = 2
"""The store is called silent at this question without an answer in a row: one alone is no news."""

LOOK, DRAW, IDLE = Look(), Draw(), Idle()

Turn: TypeAlias = Callable[[Operation, Held, float], Decision]


@frozen
class Client:
    """A node at the register, between two inputs."""

    held: Held
    agenda: Agenda = Agenda()
    out: Question | None = None
    """The question that is out: nothing else is asked before its answer."""
    asked_at: float = 0.0
    """When that was asked: what its answer shows was so then, or later."""
    pushed: Pushed | Missed | None = None
    """What the waiter told while a question was out; it is heard after the answer."""
    armed: bool = False
    """The waiter waits. One that waits on an older token is about to tell, since the register has moved on."""
    unanswered: int = 0
    """Questions in a row without an answer."""


Step: TypeAlias = tuple[Client, Ask | None, tuple[Notice, ...]]
_Taken: TypeAlias = tuple[Client, Ask | None, tuple[Notice, ...]]
"""A client that has taken an input. With an ask that is what it asks for; without one it has yet to decide."""


class Misfit(ValueError):
    """The driver fed an input that answers nothing that was asked."""


def step(client: Client, fed: Input, now: float, turn: Turn = this_turn) -> Step:
    """Return the client after this input, what it asks for and what its owner is told.

    The ask is None when the driver goes on with what it is doing: its question is still out, or the input is `Woke`, which
    counts from the next input on. `turn` is another one in worlds of calls, whose time is another one, and where a test says
    what a wrong one does. Raises Misfit.
    """
    if type(fed) not in TAKES[type(client.out)]:
        return _beside(client, fed, now), None, ()
    asked = client.out
    client, ask, notices = _take(client, fed, now)
    if ask is None and client.pushed is not None:
        client, ask, more = _take(evolve(client, pushed=None), client.pushed, now)
        notices += more
    return _decide(client, asked, notices, now, turn) if ask is None else (client, ask, notices)


TAKES: Mapping[type, frozenset[type]] = {
    Write: frozenset({Shown, Unknown, Silent, NoState}),
    Look: frozenset({Shown, Silent, NoState}),
    Observe: frozenset({Heartbeats, Silent, NoState}),
    Propose: frozenset({Counted, Silent, NoState}),
    Gather: frozenset({Proposals, Silent, NoState}),
    Errand: frozenset({Did, Silent}),
    type(None): frozenset({Submitted, Pushed, Missed, Linked, Standstill, Advance, Drawn, Passed}),
}
"""The question that is out (or none) -> the inputs after which the client decides."""


def _beside(client: Client, fed: Input, now: float) -> Client:
    """Take an input that does not change what is asked. Raises Misfit."""
    match fed:
        case Woke():
            return _take(client, fed, now)[0]
        case Submitted() | Linked() | Standstill() | Advance() if client.out is not None:
            return _take(client, fed, now)[0]
        case Pushed() if client.out is not None and _is_from_before_sleep(client.held, fed):
            # it tells nothing, except that the store is there, and nothing more after the answer
            return evolve(client, held=saw(client.held, fed.state, fed.sent_at, now, fed.here), armed=False)
        case Missed() if client.out is not None and client.held.doubt.woke_at is not None:
            return evolve(client, armed=False)  # no waiter is armed between a sleep and a look: this one is from before
        case Pushed() | Missed() if client.out is not None:
            return evolve(client, pushed=fed)
        case _:
            raise Misfit(f"{fed} is no answer to {client.out}")


def _is_from_before_sleep(held: Held, pushed: Pushed) -> bool:
    """Return True if the waiter began to wait for this before a sleep after which I have not looked yet."""
    return held.doubt.woke_at is not None and pushed.sent_at < held.doubt.woke_at


def _take(client: Client, fed: Input, now: float) -> _Taken:
    """Return what an input makes of what the node remembers and has to do."""
    held = client.held
    match fed:
        case Passed():
            return client, None, ()
        case Shown():
            return _saw(client, fed, client.asked_at, now, client.armed)
        case Heartbeats():
            return _heard(client, heard(held, fed.counters, client.asked_at, now, fed.life), now)
        case Drawn():
            return _begun(client, fed.jitter, now)
        case Pushed():
            return _saw(client, fed, fed.sent_at, now, armed=False)
        case Submitted():
            return evolve(client, agenda=reduce(submitted, fed.items, client.agenda)), None, ()
        case Counted(count):
            assert isinstance(client.out, Propose)
            return _heard(client, proposed(held, client.out.proposal, count, client.asked_at, now), now)
        case Proposals(of):
            return _heard(client, gathered(held, of, client.asked_at, now), now)
        case Did():
            assert isinstance(client.out, Errand)
            done = succeeded(client.agenda.errands, client.out)
            return _heard(evolve(client, agenda=evolve(client.agenda, errands=done)), held, now)
        case Unknown():
            assert isinstance(client.out, Write)
            return evolve(client, out=None, held=unanswered(held, client.out.token, now)), None, ()
        case Silent() | NoState():
            return _failed(client, fed, now)
        case Missed(why):
            return _failed(evolve(client, armed=False), why, now)
        case Linked(node, says, beaten_at):
            return evolve(client, held=told_by_link(held, node, says, beaten_at, now)), None, ()
        case Advance(round):
            return evolve(client, held=advanced(held, round, now)), None, ()
        case Standstill(since):
            return evolve(client, held=stands_still(held, since)), None, ()
        case Woke():
            return evolve(client, held=woke(held, now), agenda=resumed(client.agenda, now)), None, ()
        case other:
            assert_never(other)


def _begun(client: Client, jitter: float, now: float) -> _Taken:
    """Begin the next item of the agenda. Raises Misfit."""
    if not client.agenda.due:
        raise Misfit("a number was drawn, and nothing is due")
    agenda, held, errand = begun(client.agenda, client.held, now, jitter)
    return evolve(client, held=held, agenda=agenda, out=errand, asked_at=now), errand, ()


def _heard(client: Client, held: Held, now: float) -> _Taken:
    """Take an answer, by which this is what the node remembers."""
    back = (StoreBack(now),) if client.unanswered >= TOLD_AT else ()
    return evolve(client, held=held, out=None, asked_at=0.0, unanswered=0), None, back


def _saw(client: Client, shown: Shown | Pushed, sent_at: float, now: float, armed: bool) -> _Taken:
    """Take the register that was shown."""
    before, held = client.held, saw(client.held, shown.state, sent_at, now, shown.here)
    back = (StoreBack(now),) if client.unanswered >= TOLD_AT else ()
    client = evolve(client, held=held, out=None, asked_at=0.0, armed=armed, unanswered=0)
    if held.view.state is before.view.state:
        return client, None, back
    errands = _owed(client.agenda.errands, before.view.state, held.view.state)
    if errands is not client.agenda.errands:
        client = evolve(client, agenda=evolve(client.agenda, errands=errands))
    return client, None, (*back, *_moved(before, held.view.state, now))


def _owed(errands: Errands, before: RendezvousState | None, after: RendezvousState | None) -> Errands:
    """Return the errands after the register has moved, or another one stands."""
    if before is None or after is None:
        return errands
    if after.job != before.job:
        return Errands()
    return moved(errands) if after.life == before.life else forgotten(errands)


def _moved(before: Held, state: RendezvousState | None, now: float) -> tuple[Notice, ...]:
    """Return the notices for the owner when the register is another one now."""
    if state is None:
        return ()
    if before.view.state is None or state.life == before.view.state.life:
        return (Seen(state, now),)
    found = before.found.state if before.found else None
    by_me = state.life.nonce == before.who.nonce.nonce
    return Restored(before.view.state, found, state, by_me, now), Seen(state, now)


def _failed(client: Client, why: Silent | NoState, now: float) -> _Taken:
    """Take a question without an answer: nothing can be decided by that. The next try comes after a pause, or when
    something new is heard."""
    held, sent_at = client.held, -math.inf if client.out is None else client.asked_at
    match why:
        case Silent():
            held = silent(held, now, sent_at)
        case NoState(text, is_unserved=True):
            held = unserved(held, text, now, sent_at)
        case NoState(text):
            held = unreadable(held, text, now, sent_at)
        case other:
            assert_never(other)
    if isinstance(client.out, Propose) and client.out.proposal.enters:
        held = unproposed(held, client.out.proposal, now)
    agenda = client.agenda
    if isinstance(client.out, Errand):
        agenda = evolve(agenda, errands=failed(agenda.errands, client.out))
    count = client.unanswered + 1
    pause = Pause(now + pause_s(count, FIRST_PAUSE_S, held.who.settings.keep_alive_interval))
    told = (StoreSilent(why.text, now if held.contact.silent_since is None else held.contact.silent_since),)
    return evolve(client, held=held, agenda=agenda, out=None, unanswered=count), pause, told if count == TOLD_AT else ()


def _decide(client: Client, asked: Question | None, notices: tuple[Notice, ...], now: float, turn: Turn) -> Step:
    """Return what is asked now, after this question. Between two reads of heartbeats the waiter is told to wait: where each
    takes longer than an interval nothing else would show a change of the register."""
    agenda, held = client.agenda, client.held
    if agenda.errands.due:
        errand, others = next_due(agenda.errands)
        agenda = evolve(agenda, errands=others)
        return evolve(client, agenda=agenda, out=errand, asked_at=now, pushed=None), errand, notices
    if agenda.operation is None:
        return client, DRAW if agenda.due else IDLE, notices
    ask: Question
    match turn(agenda.operation, held, now):
        case Wait() as wait:
            if wait.until > now:
                return _waits(client, wait, notices)
            ask = LOOK
        case Return() as end:
            return _told(client, agenda.operation, end.outcome, notices)
        case Raise() as refusal:
            return _told(client, agenda.operation, refusal, notices)
        case Observe() if isinstance(asked, Observe) and not client.armed:
            return _waits(client, Wait(held.token, now), notices)
        case question:
            ask = question
    return evolve(client, out=ask, asked_at=now, pushed=None), ask, notices


def _waits(client: Client, wait: Wait, notices: tuple[Notice, ...]) -> Step:
    if client.armed:
        return client, wait, notices
    return (
        evolve(client, out=None, asked_at=0.0, pushed=None, armed=True),
        Wait(wait.token, wait.until, arm=True),
        notices,
    )


def _told(client: Client, operation: Operation, answer: Outcome | Raise, notices: tuple[Notice, ...]) -> Step:
    """Let an operation come to its end. What is due next is asked for when the owner has been told: it may want
    something else first."""
    agenda, held = answered(client.agenda, client.held, answer)
    after = evolve(client, held=held, agenda=agenda, out=None, asked_at=0.0, pushed=None)
    return after, DRAW if agenda.due else IDLE, (*notices, Told(operation.handler, answer, held))
