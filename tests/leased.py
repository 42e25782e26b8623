"""What a backend with leases must do besides: the store ends a silent node's heartbeat by itself (`Backend.lease_s`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from conformance import ANSWER_S, Clients, Conformance, Peer
from processes import comes_true
from worlds import node

from elastic.adapters.report.news import NoTrace
from elastic.adapters.store.port import Backend
from elastic.core.rendezvous import Heartbeats, Limits, Over, Settings, handlers, step
from elastic.core.world import Node, Why, World

LOOK_S = 5.0
"""Between two looks at a heartbeat: as long may a machine stand still before whoever looks begins afresh."""


def lease_s(backend: Backend) -> float:
    span = backend.lease_s
    assert span is not None
    return span


def stands(backend: Backend, *names: str) -> list[bool]:
    """Whether these nodes have a heartbeat."""
    counters = backend.heartbeats(node(name) for name in names).counters
    return [counters[node(name)] is not None for name in names]


def is_over(heart: Backend, began: float) -> bool:
    """Whether a heartbeat that was begun or renewed then need stand no more: the machine stood still for a whole lease."""
    return time.monotonic() - began >= lease_s(heart)


def beaten(backend: Backend, node: Node) -> bool:
    backend.heartbeat(node, 1)
    return True


class Hears(NoTrace):
    """A trace that sets an event when its loop hears a heartbeat of one node."""

    def __init__(self, of: Node) -> None:
        self.of = of
        self.event = threading.Event()

    def took(self, function: Callable[..., object], *given: object) -> None:
        input = given[0]
        if function is step and isinstance(input, Heartbeats) and input.counters.get(self.of) is not None:
            self.event.set()


class LeasedConformance(Conformance):
    """The claims of Conformance, where no lease is over while its machine stands still for some seconds; and these, where
    one that is not renewed is soon over."""

    @pytest.fixture
    def hasty(self) -> Iterator[Clients]:
        raise NotImplementedError("say how clients with short leases are made")

    def test_a_heartbeat_that_is_not_renewed_goes_when_its_lease_is_over(self, hasty: Clients) -> None:
        heart, observer = hasty(), hasty()
        began = time.monotonic()
        heart.heartbeat(node("a"), 1)
        assert stands(observer, "a") == [True] or is_over(heart, began)
        assert comes_true(lambda: stands(observer, "a") == [False])
        assert time.monotonic() - began >= lease_s(heart) * 0.9

    def test_renewing_is_enough_the_counter_may_stand_still(self, hasty: Clients) -> None:
        heart, observer = hasty(), hasty()
        heart.heartbeat(node("a"), 1)
        heart.heartbeat(node("b"), 1)
        both = [True, True]
        while both[1]:
            began = time.monotonic()
            heart.heartbeat(node("a"), 1)
            time.sleep(lease_s(heart) / 20)
            both = stands(observer, "a", "b")
            assert both[0] or is_over(heart, began)

    def test_who_only_looks_renews_nothing(self, hasty: Clients) -> None:
        heart = hasty()
        heart.heartbeat(node("a"), 1)
        assert comes_true(lambda: stands(heart, "a") == [False])

    def test_a_heartbeat_begins_again_after_its_lease_was_over(self, hasty: Clients) -> None:
        heart, observer = hasty(), hasty()
        heart.heartbeat(node("a"), 1)
        assert comes_true(lambda: stands(observer, "a") == [False])
        began = time.monotonic()
        heart.heartbeat(node("a"), 1)
        assert stands(observer, "a") == [True] or is_over(heart, began)

    def test_a_heartbeat_that_somebody_took_away_begins_again(self, client: Clients) -> None:
        heart, other = client(), client()
        heart.heartbeat(node("a"), 1)
        other.remove_heartbeat(node("a"))
        assert stands(other, "a") == [False]
        heart.heartbeat(node("a"), 1)
        assert stands(other, "a") == [True]

    def test_nobody_is_lost_whose_counter_stands_still(self, client: Clients) -> None:
        settings = Settings(Limits(2, 2), keep_alive_interval=0.1, keep_alive_max_attempt=2, leased=True)
        observer = client()
        with ExitStack() as stack:
            a, b = (stack.enter_context(Peer(client(), name, settings, f"life{name}")) for name in "ab")
            assert comes_true(lambda: stands(observer, "a", "b") == [True, True])
            for peer in (a, b):
                peer.submit(handlers.join)
            assert isinstance(a.hears(handlers.join), World) and isinstance(b.hears(handlers.join), World)
            time.sleep(settings.ttl * 4)
            assert a.told.empty() and b.told.empty()

    def test_a_node_that_fell_silent_is_lost_when_its_lease_is_over(self, hasty: Clients) -> None:
        settings = Settings(
            Limits(1, 2),
            last_call_timeout=ANSWER_S,
            keep_alive_interval=LOOK_S,
            keep_alive_max_attempt=600,
            leased=True,
        )
        with ExitStack() as stack:
            hears_b = Hears(node("b"))
            a = stack.enter_context(Peer(hasty(), "a", settings, "lifea", hears_b))
            b = Peer(hasty(), "b", settings, "lifeb")
            b.loop.start()
            stack.callback(b.loop.stop)
            for peer in (a, b):
                peer.submit(handlers.join)
            assert comes_true(lambda: beaten(b.backend, b.node) and hears_b.event.is_set())
            assert isinstance(a.hears(handlers.join), World)
            over = a.hears(handlers.watch)
            assert isinstance(over, Over) and over.ended and over.ended.why is Why.LOST
