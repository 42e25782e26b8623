"""What the owners of the nodes' clients are told, judged by what the clients hold (L12).

An owner knows by the notices of its client which register is held, and if the store answers. So each change of these is told
once, and a register of another life as one that was restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import define, field

from ..properties.law import Law, Strength
from ..rendezvous import Client, Notice, RendezvousState, Restored, Seen, StoreBack, StoreSilent
from ..violation import Finding, check
from ..world import Node

NEWS_AT = 2
"""This many questions in a row without an answer are a silence."""

L12 = Law(
    "L12",
    "A client tells its owner each register that it holds, one of another life as restored and by whom, and a silence of "
    "the store and its end once.",
    "a client tells its owner of the register, or of the store's silence",
)


@define
class Owners:
    strength: Strength = field(factory=Strength)
    silent: set[Node] = field(factory=set)
    """The owners of these nodes were told that the store does not answer, and not that it does again."""

    def hear(self, before: Client, client: Client, notices: Iterable[Notice]) -> None:
        """Judge what a step of this client tells its owner. Raises Violation."""
        check(self._hears(before.held.state, client, notices))

    def _hears(self, last: RendezvousState | None, client: Client, notices: Iterable[Notice]) -> Iterator[Finding]:
        node, restored = client.held.node, None
        for notice in notices:
            match notice:
                case StoreSilent() | StoreBack():
                    is_silent = isinstance(notice, StoreSilent)
                    if is_silent is (node in self.silent):
                        yield "L12", f"{node} tells twice that the store {'is silent' if is_silent else 'answers'}"
                    (self.silent.add if is_silent else self.silent.discard)(node)
                case Restored():
                    restored = notice
                case Seen(state):
                    yield from _of_seen(client, last, restored, state)
                    last, restored = state, None
                case _:
                    continue
            self.strength.armed["L12"] += 1
        if (node in self.silent) is not (client.unanswered >= NEWS_AT):
            yield "L12", f"{node} has {client.unanswered} questions in a row without an answer, and tells otherwise"
        if client.held.state not in (None, last):
            yield "L12", f"{node} holds another register, and does not tell"


def _of_seen(
    client: Client, before: RendezvousState | None, restored: Restored | None, after: RendezvousState
) -> Iterator[Finding]:
    """Yield what is wrong with the notice of a register where this one was held before."""
    node, is_other = client.held.node, before is not None and before.life != after.life
    if (restored is not None) is not is_other:
        yield "L12", f"{node} tells of {after.life} as {'restored' if restored else 'the same life'}, which it is not"
    if restored is not None and restored.by_me and _drawn(after.life.nonce) != _drawn(client.held.nonce.nonce):
        yield "L12", f"{node} says that it has begun {after.life}, which another one has"


def _drawn(nonce: str) -> str:
    """Return what the shell of a node drew: the node counts its lives behind that."""
    return nonce.partition("/")[0]
