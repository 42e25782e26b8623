"""The laws of what clients tell their owners, judged by what they hold (L12), and of what becomes of owners' requests (L14).

An owner knows by the notices of its client which register is held, and if the store answers. So each change of these is told
once, and a register of another life as one that was restored. It waits for the answer to each request, unless it has asked
since for something that voids it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field

from ..properties.law import Law, Strength
from ..rendezvous import (
    Client,
    Input,
    Notice,
    Raise,
    RendezvousState,
    Request,
    Restored,
    Seen,
    StoreBack,
    StoreSilent,
    Submitted,
    Told,
)
from ..rendezvous.agenda import Agenda
from ..rendezvous.context import Handler
from ..rendezvous.handlers import close, join, leave, watch
from ..violation import Finding, check
from ..world import Node

NEWS_AT = 2
"""This many questions in a row without an answer are a silence."""

L12 = Law(
    "L12",
    "A client tells its owner each register that it holds, one of another life as restored, by whom and over what, and "
    "once a silence of the store, since its first question without an answer, and its end.",
    "a client tells its owner of the register, or of the store's silence",
)

L14 = Law(
    "L14",
    "A client answers each request, but for what a later one voids: a leave all but a close, and a close a join; a refusal "
    "voids a join too.",
    "an owner asks while another request of its waits",
)


@define
class Owners:
    strength: Strength = field(factory=Strength)
    silent: set[Node] = field(factory=set)
    """The owners of these nodes were told that the store does not answer, and not that it does again."""

    def hear(self, before: Client, client: Client, notices: Iterable[Notice]) -> None:
        """Judge what a step of this client tells its owner. Raises Violation."""
        check(self._hears(before, client, notices))

    def ask(self, before: Client, fed: Input, client: Client, notices: Iterable[Notice]) -> None:
        """Judge what a step of this client makes of the requests of its owner. Raises Violation."""
        asked = [each for each in fed.items if isinstance(each, Request)] if isinstance(fed, Submitted) else []
        waits = _requests(before.agenda)
        self.strength.armed["L14"] += bool(asked and waits)
        check(
            _of_requests(waits, asked, _requests(client.agenda), [each for each in notices if isinstance(each, Told)])
        )

    def _hears(self, before: Client, client: Client, notices: Iterable[Notice]) -> Iterator[Finding]:
        node, restored, last = client.held.who.node, None, before.held.view.state
        for notice in notices:
            match notice:
                case StoreSilent() | StoreBack():
                    is_silent, since = isinstance(notice, StoreSilent), client.held.contact.silent_since
                    if is_silent and notice.at != since:
                        yield "L12", f"{node} tells of a silence since {notice.at}, not {since}"
                    if is_silent is (node in self.silent):
                        yield "L12", f"{node} tells twice that the store {'is silent' if is_silent else 'answers'}"
                    (self.silent.add if is_silent else self.silent.discard)(node)
                case Restored():
                    restored = notice
                    yield from _of_restored(before, last, restored)
                case Seen(state):
                    yield from _of_seen(client, last, restored, state)
                    last, restored = state, None
                case _:
                    continue
            self.strength.armed["L12"] += 1
        if (node in self.silent) is not (client.unanswered >= NEWS_AT):
            yield "L12", f"{node} has {client.unanswered} questions in a row without an answer, and tells otherwise"
        if client.held.view.state not in (None, last):
            yield "L12", f"{node} holds another register, and does not tell"


def _of_seen(
    client: Client, before: RendezvousState | None, restored: Restored | None, after: RendezvousState
) -> Iterator[Finding]:
    """Yield what is wrong with the notice of a register where this one was held before."""
    node, is_other = client.held.who.node, before is not None and before.life != after.life
    if (restored is not None) is not is_other:
        yield "L12", f"{node} tells of {after.life} as {'restored' if restored else 'the same life'}, which it is not"
    if restored is not None and restored.by_me and _drawn(after.life.nonce) != _drawn(client.held.who.nonce.nonce):
        yield "L12", f"{node} says that it has begun {after.life}, which another one has"


def _of_restored(before: Client, last: RendezvousState | None, restored: Restored) -> Iterator[Finding]:
    """Yield what is wrong with the notice of another life where `last` was held. A step that takes an answer, and then what
    was pushed, may have found the other state by the answer."""
    node, held, found = before.held.who.node, before.held, before.held.found.state if before.held.found else None
    if restored.before is not last:
        yield "L12", f"{node} tells of {restored.after.life} as restored over what it did not hold"
    if last is held.view.state and restored.found is not found and before.pushed is None:
        yield "L12", f"{node} tells of {restored.after.life} in the place of what it has not found"


def _requests(agenda: Agenda) -> Counter[Handler]:
    """Return what an owner waits for the answer to."""
    under_way = [agenda.operation.handler] if agenda.operation and agenda.operation.handler is not watch else []
    return Counter([*under_way, *(each.handler for each in agenda.queue if isinstance(each, Request))])


def _of_requests(
    waited: Counter[Handler], asked: Sequence[Request], wait: Counter[Handler], told: Sequence[Told]
) -> Iterator[Finding]:
    """Yield what is wrong with the requests that wait after a step: `waited` did before, and these came or ended in it."""
    handlers = [each.handler for each in asked]
    new = Counter(handlers)
    lost = waited + new - wait - Counter([each.handler for each in told])
    voids_join = close in new or any(isinstance(each.answer, Raise) for each in told)
    for handler in lost:
        if handler is close or not (leave in new or (handler is join and voids_join)):
            yield "L14", f"a {handler.__name__} is neither answered nor voided"
    since = Counter(handlers[handlers.index(leave) :]) if leave in new else wait
    for handler in wait - since:
        if handler not in (close, leave):
            yield "L14", f"a {handler.__name__} is carried out by a node that leaves"


def _drawn(nonce: str) -> str:
    """Return what the shell of a node drew: the node counts its lives behind that."""
    return nonce.partition("/")[0]
