"""Somebody who looks once at a job sees which nodes send heartbeats."""

from __future__ import annotations

import math
from collections.abc import Iterable

from worlds import edited, node, running

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.port import Shown
from elastic.cli.looking import LISTEN_S, Looking
from elastic.cli.render.history import History
from elastic.cli.render.job import Job
from elastic.core.rendezvous import Close, Heartbeats, RendezvousState, Token
from elastic.core.world import Ending, Node, Verdict, Why

TWO = running("a b")


class Beating(MemoryBackend):
    """A store of a job in which these nodes send a heartbeat before each read."""

    def __init__(self, state: RendezvousState, *names: str) -> None:
        super().__init__(MemoryStore(), SystemClock())
        self._store.state = state
        self.names = names
        for each in "ab":
            self.heartbeat(node(each), 1)
        self.reads = 0

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        self.reads += 1
        for each in self.names:
            self.heartbeat(node(each), self.reads)
        return super().heartbeats(nodes)


def listened(backend: Beating) -> Looking:
    looking = Looking(backend, History(Job("job", "store", None)))
    looking.look()
    looking.listen()
    return looking


def test_who_looks_once_waits_until_each_node_has_sent_a_heartbeat() -> None:
    backend = Beating(TWO, "a", "b")
    looking = listened(backend)
    assert (backend.reads, looking.unmoved(), set(looking.ages_s())) == (2, frozenset(), {node("a"), node("b")})


def test_a_node_that_sends_none_is_waited_for_once_and_known_by_its_age() -> None:
    looking = listened(Beating(TWO, "a"))
    assert looking.unmoved() == {node("b")}
    assert looking.ages_s()[node("b")] >= LISTEN_S


def test_of_a_job_that_is_over_no_heartbeat_is_waited_for() -> None:
    over = edited(TWO, "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)))
    backend = Beating(over)
    listened(backend)
    assert backend.reads == 1


class Restored(MemoryBackend):
    """A store that was started again: its register is put back while somebody waits for it."""

    def __init__(self, waits: float) -> None:
        super().__init__(MemoryStore(), SystemClock())
        self.waits = waits

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        self.waits -= 1
        if self.waits < 0:
            self._store.state = TWO
            return super().wait_for_change(token, until)
        return super().wait_for_change(token, min(until, SystemClock().now()))


def test_a_register_that_is_put_back_into_an_empty_store_is_waited_for() -> None:
    looking = Looking(Restored(waits=2), History(Job("job", "store", None)))
    looking.await_register(60.0)
    assert looking.job.state == TWO


def test_a_store_that_stays_empty_has_no_such_job() -> None:
    looking = Looking(Restored(waits=math.inf), History(Job("job", "store", None)))
    looking.await_register(0.01)
    assert looking.job.state is None
