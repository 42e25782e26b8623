"""The heart: beats that others can see, acknowledged with the time at which they were sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

import pytest
from attrs import field, frozen
from conformance import escapes
from worlds import node

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.heart import Heart
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.port import BEATS_MAX, OutOfReach
from elastic.core.world import Node

ANSWER_S = 60.0
PROMPT_S = 60.0
"""On a machine that is busy with something else; what is not prompt takes far longer."""
NEVER_S = 600.0
"""An interval in which a test is over."""


class Backend(MemoryBackend):
    """Calls `before` before each heartbeat; its clones do too."""

    def __init__(self, store: MemoryStore, before: Callable[[], None] = lambda: None) -> None:
        super().__init__(store, SystemClock())
        self._before = before

    def heartbeat(self, node: Node, counter: int) -> None:
        self._before()
        super().heartbeat(node, counter)

    def clone(self) -> Backend:
        return Backend(self._store, self._before)


@frozen
class Beating:
    heart: Heart
    backend: Backend
    beaten: SimpleQueue[float] = field(factory=SimpleQueue)

    def counter(self) -> int | None:
        return self.backend.heartbeats([node("a")]).counters[node("a")]


@contextmanager
def beating(interval_s: float, before: Callable[[], None] = lambda: None) -> Iterator[Beating]:
    backend = Backend(MemoryStore(), before)
    beaten: SimpleQueue[float] = SimpleQueue()
    heart = Heart(backend, node("a"), interval_s, SystemClock(), lambda sent_at, life: beaten.put(sent_at), escapes)
    heart.start()
    try:
        yield Beating(heart, backend, beaten)
    finally:
        heart.stop()


def test_it_beats_once_an_interval() -> None:
    with beating(0.05) as one:
        first, _, third = (one.beaten.get(timeout=ANSWER_S) for _ in range(3))
        assert third - first >= 2 * 0.05 - 0.001
        counter = one.counter()
        assert counter is not None and counter >= 3


def test_a_program_that_ends_does_not_wait_for_its_thread() -> None:
    threads = SimpleQueue[threading.Thread]()
    with beating(60.0, lambda: threads.put(threading.current_thread())) as one:
        one.heart.beat()
        thread = threads.get(timeout=ANSWER_S)
        assert (thread.name, thread.daemon) == ("elastic-heart", True)


def test_it_beats_at_once_when_asked() -> None:
    with beating(NEVER_S) as one:
        began = time.monotonic()
        one.heart.beat()
        sent_at = one.beaten.get(timeout=ANSWER_S)
        assert began <= sent_at <= time.monotonic() < began + PROMPT_S
        assert one.counter() == 1


def test_it_counts_on_from_a_process_that_beat_for_its_node_before() -> None:
    """With a token a counter that goes back shows nobody alive: a monitor that was started again would lose its rank."""
    with beating(NEVER_S) as one:
        one.backend.heartbeat(node("a"), 50)
        one.heart.beat()
        one.beaten.get(timeout=ANSWER_S)
        assert one.counter() == 51


def test_an_acknowledgement_names_the_time_of_sending() -> None:
    asked, go = threading.Event(), threading.Event()

    def hold() -> None:
        asked.set()
        assert go.wait(ANSWER_S)

    with beating(NEVER_S, hold) as one:
        one.heart.beat()
        assert asked.wait(ANSWER_S)
        sent_before = time.monotonic()
        go.set()
        assert one.beaten.get(timeout=ANSWER_S) <= sent_before


def test_an_error_that_nobody_foresaw_in_its_thread_is_told() -> None:
    def slip() -> None:
        raise ZeroDivisionError("a slip")

    errors = SimpleQueue[BaseException]()
    backend = Backend(MemoryStore(), slip)
    heart = Heart(backend, node("a"), NEVER_S, SystemClock(), lambda sent_at, life: None, errors.put)
    heart.start()
    try:
        heart.beat()
        assert isinstance(errors.get(timeout=ANSWER_S), ZeroDivisionError)
    finally:
        heart.stop()


def test_a_beat_that_was_not_acknowledged_is_not_told_and_the_next_one_comes() -> None:
    tries = SimpleQueue[None]()

    def fail_twice() -> None:
        tries.put(None)
        if tries.qsize() <= 2:
            raise OutOfReach("nobody listens")

    with beating(0.02, fail_twice) as one:
        one.beaten.get(timeout=ANSWER_S)
        counter = one.counter()
        assert tries.qsize() >= 3 and counter is not None and counter >= 3


def test_stopping_takes_the_heartbeat_away_at_once() -> None:
    with beating(NEVER_S) as one:
        one.heart.beat()
        one.beaten.get(timeout=ANSWER_S)
        began = time.monotonic()
        one.heart.stop()
        assert time.monotonic() - began < PROMPT_S
        assert one.counter() is None


def test_a_store_that_is_gone_at_the_end_keeps_the_heartbeat_and_no_error_escapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone(Backend):
        def clone(self) -> Gone:
            return Gone(self._store)

        def remove_heartbeat(self, node: Node) -> None:
            asked.set()
            raise OutOfReach("nobody listens")

    asked, escaped = threading.Event(), list[object]()
    monkeypatch.setattr(threading, "excepthook", escaped.append)
    heart = Heart(Gone(MemoryStore()), node("a"), ANSWER_S, SystemClock(), lambda sent_at, life: None, escapes)
    heart.start()
    heart.stop()
    assert asked.is_set() and not escaped


def test_a_store_that_does_not_answer_holds_the_end_up_for_an_interval_at_most() -> None:
    asked, go = threading.Event(), threading.Event()

    def hold() -> None:
        asked.set()
        assert go.wait(2 * ANSWER_S)

    with beating(0.1, hold) as one:
        assert asked.wait(ANSWER_S)
        began = time.monotonic()
        one.heart.stop()
        assert time.monotonic() - began < PROMPT_S
        go.set()


def test_nothing_beats_after_the_end() -> None:
    """Its end is waited for as long as an interval: a beat that is under way comes before it."""
    with beating(NEVER_S) as one:
        one.heart.beat()
        one.beaten.get(timeout=ANSWER_S)
        one.heart.stop()
        one.heart.beat()
        try:
            one.beaten.get(timeout=0.1)
        except Empty:
            return
        raise AssertionError("it beats on")


def test_a_heart_that_never_started_stops() -> None:
    Heart(Backend(MemoryStore()), node("a"), NEVER_S, SystemClock(), lambda sent_at, life: None, escapes).stop()


def test_where_a_lease_is_renewed_the_counter_stands_still() -> None:
    backend = Backend(MemoryStore(lease_s=NEVER_S))
    beaten: SimpleQueue[float] = SimpleQueue()
    heart = Heart(backend, node("a"), 0.02, SystemClock(), lambda sent_at, life: beaten.put(sent_at), escapes)
    heart.start()
    try:
        for _ in range(3):
            beaten.get(timeout=ANSWER_S)
        assert backend.heartbeats([node("a")]).counters == {node("a"): 1}
    finally:
        heart.stop()


def test_the_highest_heartbeat_is_followed_by_the_first() -> None:
    """What stands there may be forged. Nobody would hear one that is higher."""
    with beating(NEVER_S) as one:
        one.backend.heartbeat(node("a"), BEATS_MAX)
        one.heart.beat()
        one.beaten.get(timeout=ANSWER_S)
        assert one.counter() == 1
