"""The thread of a monitor process that follows the register: which versions it tells of, and what it asks for them."""

from __future__ import annotations

import threading

from conformance import born, grown
from processes import comes_true

from elastic.adapters.clock import SystemClock
from elastic.adapters.inprocess.rank.register_follower import RegisterFollower
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.port import OutOfReach, Shown
from elastic.core.rendezvous import RendezvousState, Token


class Listed(MemoryBackend):
    """A client that lists the tokens on which it has waited. It is its own clone."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, SystemClock())
        self.waits: list[Token | None] = []

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        self.waits.append(token)
        return super().wait_for_change(token, until)

    def clone(self) -> MemoryBackend:
        return self


def test_a_store_that_has_lost_the_register_is_asked_once_until_it_has_one_again() -> None:
    store, seen = MemoryStore(), list[RendezvousState]()
    listed = Listed(store)
    failed = list[BaseException]()
    follower = RegisterFollower(listed, seen.append, lambda: None, failed.append)
    follower.start()
    first, later = born(), grown(born(), "b")
    shown: list[RendezvousState | None] = []
    try:
        for state in (first, None, later):
            assert comes_true(lambda: len(listed.waits) > len(shown))
            with store.changed:
                shown.append(state)
                store.state = state
                store.changed.notify_all()
        assert comes_true(lambda: len(listed.waits) > len(shown))
    finally:
        follower.stop()
    assert (seen, failed) == ([first, later], [])
    assert listed.waits == [None, first.token, None, later.token]


def test_versions_that_come_while_it_rests_are_not_asked_for() -> None:
    store, seen = MemoryStore(), list[RendezvousState]()
    first, second, third = born(), grown(born(), "b"), grown(grown(born(), "b"), "c")
    store.state = first
    listed = Listed(store)
    follower = RegisterFollower(listed, seen.append, lambda: None, lambda _: None, rest_s=threading.TIMEOUT_MAX)
    follower.start()
    try:
        assert comes_true(lambda: bool(seen))
        for before, after in ((first, second), (second, third)):
            assert listed.set(after, before.token).state == after
    finally:
        follower.stop()
    assert (seen, listed.waits) == ([first], [None])


class Failing(Listed):
    """A client that a store answers, or does not, in this order; then it waits."""

    def __init__(self, store: MemoryStore, answers: list[bool]) -> None:
        super().__init__(store)
        self.answers = answers

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        if self.answers and not self.answers.pop(0):
            raise OutOfReach("a test")
        return super().wait_for_change(None if self.answers else token, until)


class Pauses(threading.Event):
    """An event that is waited for in no time; it lists for how long it should have been."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.asked.append(timeout)
        return self.is_set()


def test_after_an_answer_the_first_pause_before_a_silent_store_is_short_again() -> None:
    store = MemoryStore()
    store.state = born()
    failing = Failing(store, [False, False, False, True, False, True])
    follower = RegisterFollower(failing, lambda state: None, lambda: None, lambda _: None, rest_s=9.0)
    follower._stopped = pauses = Pauses()
    follower.start()
    try:
        assert comes_true(lambda: not failing.answers)
    finally:
        follower.stop()
    assert pauses.asked[:5] == [0.05, 0.1, 0.2, 9.0, 0.05]
