"""What a backend with leases must do besides: the store ends a silent node's heartbeat by itself (`Backend.lease_s`)."""

from __future__ import annotations

import time
from contextlib import ExitStack

from conformance import ANSWER_S, Clients, Conformance, Peer
from processes import comes_true
from worlds import node

from elastic.adapters.backends.port import Backend
from elastic.core.rendezvous import Limits, Over, Settings, handlers
from elastic.core.world import Why, World


def lease_s(backend: Backend) -> float:
    span = backend.lease_s
    assert span is not None
    return span


def stands(backend: Backend, *names: str) -> list[bool]:
    """Whether these nodes have a heartbeat."""
    counters = backend.heartbeats(node(name) for name in names).counters
    return [counters[node(name)] is not None for name in names]


class LeasedConformance(Conformance):
    """The claims of Conformance, and these."""

    def test_a_heartbeat_that_is_not_renewed_goes_when_its_lease_is_over(self, client: Clients) -> None:
        heart, observer = client(), client()
        heart.heartbeat(node("a"), 1)
        began = time.monotonic()
        assert stands(observer, "a") == [True]
        assert comes_true(lambda: stands(observer, "a") == [False])
        assert time.monotonic() - began >= lease_s(heart) * 0.9

    def test_renewing_is_enough_the_counter_may_stand_still(self, client: Clients) -> None:
        heart, observer = client(), client()
        heart.heartbeat(node("a"), 1)
        heart.heartbeat(node("b"), 1)
        while stands(observer, "b") == [True]:
            heart.heartbeat(node("a"), 1)
            time.sleep(lease_s(heart) / 20)
        assert observer.heartbeats([node("a"), node("b")]).counters == {node("a"): 1, node("b"): None}

    def test_who_only_looks_renews_nothing(self, client: Clients) -> None:
        heart = client()
        heart.heartbeat(node("a"), 1)
        assert comes_true(lambda: stands(heart, "a") == [False])

    def test_a_heartbeat_begins_again_after_its_lease_was_over(self, client: Clients) -> None:
        heart, observer = client(), client()
        heart.heartbeat(node("a"), 1)
        assert comes_true(lambda: stands(observer, "a") == [False])
        heart.heartbeat(node("a"), 1)
        assert observer.heartbeats([node("a")]).counters == {node("a"): 1}

    def test_a_heartbeat_that_somebody_took_away_begins_again(self, client: Clients) -> None:
        heart, other = client(), client()
        heart.heartbeat(node("a"), 1)
        other.remove_heartbeat(node("a"))
        assert stands(other, "a") == [False]
        heart.heartbeat(node("a"), 1)
        assert stands(other, "a") == [True]

    def test_nobody_is_lost_whose_counter_stands_still(self, client: Clients) -> None:
        settings = Settings(Limits(2, 2), keep_alive_interval=0.1, keep_alive_max_attempt=2, leased=True)
        with ExitStack() as stack:
            a, b = (stack.enter_context(Peer(client(), name, settings, f"life{name}")) for name in "ab")
            for peer in (a, b):
                peer.submit(handlers.join)
            assert isinstance(a.hears(handlers.join), World) and isinstance(b.hears(handlers.join), World)
            time.sleep(settings.ttl * 4)
            assert a.told.empty() and b.told.empty()

    def test_a_node_that_fell_silent_is_lost_when_its_lease_is_over(self, client: Clients) -> None:
        settings = Settings(Limits(1, 2), last_call_timeout=ANSWER_S, keep_alive_max_attempt=600, leased=True)
        with ExitStack() as stack:
            a = stack.enter_context(Peer(client(), "a", settings, "lifea"))
            b = Peer(client(), "b", settings, "lifeb")
            b.loop.start()
            stack.callback(b.loop.stop)
            for peer in (a, b):
                b.backend.heartbeat(b.node, 1)
                peer.submit(handlers.join)
            assert isinstance(a.hears(handlers.join), World)
            over = a.hears(handlers.watch)
            assert isinstance(over, Over) and over.ended and over.ended.why is Why.LOST
