"""The loop under the protocol, with real threads, over a memory backend that does what a test says."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import pytest
from attrs import evolve, frozen
from conformance import ANSWER_S, Peer, born, escapes, fault
from processes import comes_true
from worlds import arrived, node, profile

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.loop import RendezvousLoop, ToRecord
from elastic.adapters.rendezvous.stall_detector import StallDetector
from elastic.adapters.report.news import Recorded, Restored, Seen, StoreBack, StoreSilent
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import FAULTS, Notes
from elastic.adapters.store.port import (
    Backend,
    Found,
    Heartbeats,
    Log,
    OutcomeUnknown,
    OutOfReach,
    Place,
    Shown,
    Unreadable,
)
from elastic.core.rendezvous import (
    Arrive,
    Ask,
    Drawn,
    Fail,
    Held,
    Input,
    Leave,
    Limits,
    Linked,
    Look,
    Over,
    Passed,
    Pause,
    Pushed,
    Raise,
    RendezvousState,
    Settings,
    Settled,
    Silent,
    Submitted,
    Token,
    Wait,
    Who,
    Woke,
    Write,
    apply,
    blank,
    handlers,
)
from elastic.core.rendezvous.agenda import Request
from elastic.core.rendezvous.client import FIRST_PAUSE_S
from elastic.core.rendezvous.links import Says
from elastic.core.world import Ending, Fault, Life, Node, Verdict, Why, World

ALONE = Settings(Limits(1, 1), keep_alive_interval=0.1, keep_alive_max_attempt=1_000)
"""Nobody is lost here, and nobody takes a thread that waits for its turn for a machine that slept."""
PAIR = evolve(ALONE, limits=Limits(2, 2))
IDLE_S = 0.3
"""How long a test looks at a loop that has nothing to do."""
PROMPT_S = 60.0
"""On a machine that is busy with something else; what is not prompt takes far longer."""

Answer = TypeVar("Answer")
Trouble = Callable[[Callable[[], object]], object]
"""What becomes of a call."""


def lost_on_the_way(call: Callable[[], object]) -> object:
    raise OutcomeUnknown("no answer")


def answer_lost(call: Callable[[], object]) -> object:
    call()
    raise OutcomeUnknown("no answer")


def given(call: Callable[[], object]) -> object:
    return call()


def out_of_reach(call: Callable[[], object]) -> object:
    raise OutOfReach("nobody listens")


def unreadable(call: Callable[[], object]) -> object:
    raise Unreadable("the key `state` holds garbage")


class Plan:
    """What becomes of the next calls, and which were made."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.threads: set[str] = set()
        self.troubles: dict[str, deque[Trouble]] = {}
        self.out = threading.Event()
        self.waits_on: Token | None = None

    def next(self, name: str, *troubles: Trouble) -> None:
        self.troubles[name] = deque(troubles)

    def run(self, name: str, call: Callable[[], Answer]) -> Answer:
        self.calls.append(name)
        self.threads.add(threading.current_thread().name)
        if self.out.is_set():
            raise OutOfReach("nobody listens")
        trouble = self.troubles[name].popleft() if self.troubles.get(name) else None
        if trouble is not None:
            return trouble(call)  # type: ignore[return-value]
        return call()


class Planned:
    """A backend to which the plan happens."""

    def __init__(self, behind: Backend, plan: Plan) -> None:
        self._behind = behind
        self._plan = plan
        self.heard = None
        self.notes = Notes(self, is_plain=True)

    @property
    def lease_s(self) -> float | None:
        return self._behind.lease_s

    def get(self) -> Shown:
        return self._plan.run("get", self._behind.get)

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        return self._plan.run("set", lambda: self._behind.set(state, token))

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        def wait() -> Shown:
            self._plan.waits_on = token
            return self._behind.wait_for_change(token, until)

        return self._plan.run("wait", wait)

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        return self._plan.run("beat", lambda: self._behind.heartbeat(node, counter))

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        return self._plan.run("look", lambda: self._behind.heartbeats(nodes))

    def remove_heartbeat(self, node: Node) -> None:
        self._plan.run("unbeat", lambda: self._behind.remove_heartbeat(node))

    def put(self, place: Place, data: Any) -> None:
        self._plan.run("put", lambda: self._behind.put(place, data))

    def count(self, tally: str, place: Place, data: Any, over: str = "") -> int:
        return self._plan.run("proposal", lambda: self._behind.count(tally, place, data, over))

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        return self._plan.run("faults" if log is FAULTS else "proposals", lambda: self._behind.read(places, log))

    def drop(self, places: Iterable[Place]) -> None:
        self._behind.drop(places)

    def clone(self) -> Planned:
        return Planned(self._behind.clone(), self._plan)

    def close(self) -> None:
        self._behind.close()


class House:
    """One memory store, and nodes at it, each with a plan of its own."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.backend = MemoryBackend(self.store, SystemClock())

    @contextmanager
    def node(self, name: str, settings: Settings, plan: Plan | None = None) -> Iterator[Peer]:
        with Peer(Planned(self.backend.clone(), plan or Plan()), name, settings, f"life{name}") as peer:
            yield peer

    def becomes(self, state: RendezvousState | None) -> None:
        """Something else did this to the store."""
        with self.store.changed:
            self.store.state = state
            self.store.changed.notify_all()


@pytest.fixture
def house() -> House:
    return House()


def joined(*peers: Peer) -> list[World]:
    for peer in peers:
        peer.submit(handlers.join)
    worlds = [peer.hears(handlers.join) for peer in peers]
    assert all(isinstance(world, World) for world in worlds)
    return [world for world in worlds if isinstance(world, World)]


def told_nothing(peer: Peer, for_s: float = IDLE_S) -> bool:
    try:
        peer.told.get(timeout=for_s)
    except Empty:
        return True
    return False


# --- operations and their order


def test_operations_are_carried_out_one_after_the_other(house: House) -> None:
    with house.node("a", ALONE) as a:
        a.submit(handlers.join)
        a.submit(handlers.done)
        assert isinstance(a.hears(handlers.join), World)
        assert isinstance(a.hears(handlers.done), Verdict)


def test_what_is_joined_is_watched_until_it_is_over(house: House) -> None:
    with house.node("a", PAIR) as a, house.node("b", PAIR) as b:
        joined(a, b)
        assert b.asks(handlers.leave) == Settled()
        over = a.hears(handlers.watch)
        assert isinstance(over, Over) and over.ended
        assert (over.round, over.ended.why, over.ended.by) == (0, Why.LEFT, node("b"))


def test_a_watch_goes_on_after_what_interrupted_it(house: House) -> None:
    with house.node("a", PAIR) as a, house.node("b", PAIR) as b:
        joined(a, b)
        a.record(fault("a"))
        assert a.told.get(timeout=ANSWER_S) == Recorded(fault("a"))
        b.submit(handlers.leave)
        assert isinstance(a.hears(handlers.watch), Over)


def test_who_is_done_watches_until_the_job_is(house: House) -> None:
    with house.node("a", PAIR) as a, house.node("b", PAIR) as b:
        joined(a, b)
        assert a.asks(handlers.done) == Settled()
        b.submit(handlers.done)
        verdict = a.hears(handlers.watch)
        assert isinstance(verdict, Verdict) and verdict.ending is Ending.SUCCEEDED


def test_nothing_is_watched_after_an_end_until_the_next_join(house: House) -> None:
    with house.node("a", PAIR) as a, house.node("b", PAIR) as b:
        joined(a, b)
        assert a.asks(handlers.end, Why.FAILED) == Settled()
        b.hears(handlers.watch)
        assert b.asks(handlers.leave) == Settled()
        assert told_nothing(a)


def test_a_join_brings_the_profile_of_this_round(house: House) -> None:
    with house.node("a", ALONE) as a:
        new = evolve(a.profile, host="renamed")
        a.submit(handlers.join, profile=new)
        world = a.hears(handlers.join)
        assert isinstance(world, World) and world.members[0].profile == new


def test_leaving_voids_a_pending_join(house: House) -> None:
    plan = Plan()
    with house.node("a", PAIR, plan) as a:
        a.submit(handlers.join)
        state = house.backend.wait_for_change(None, time.monotonic() + ANSWER_S).state
        assert state and state.participants == (node("a"),)
        assert a.asks(handlers.leave) == Settled()
        assert told_nothing(a)
    state = house.backend.get().state
    assert state and not state.seats


def test_leaving_voids_a_join_that_waits_its_turn(house: House) -> None:
    held, plan = threading.Event(), Plan()
    with house.node("a", PAIR, plan) as a:
        a.loop.submit(ToRecord(lambda: _after(held, fault("a"))))
        a.submit(handlers.join)
        a.submit(handlers.leave)
        held.set()
        assert a.told.get(timeout=ANSWER_S) == Recorded(fault("a"))
        assert a.hears(handlers.leave) == Settled()
    assert "set" not in plan.calls


def test_leaving_does_not_void_a_close(house: House) -> None:
    held, plan = threading.Event(), Plan()
    with house.node("a", ALONE, plan) as a:
        joined(a)
        plan.next("set", lambda call: _after(held, call()))
        a.submit(handlers.close, Why.CANNOT_START, Ending.FAILED)
        a.submit(handlers.leave)
        held.set()
        verdict = a.hears(handlers.close)
        assert verdict == Verdict(Ending.FAILED, 0, node("a"), Why.CANNOT_START)
        assert a.hears(handlers.leave) == verdict


def test_a_failure_is_on_record_before_what_is_submitted_next(house: House) -> None:
    plan = Plan()
    threads = []

    def read() -> Fault:
        threads.append(threading.current_thread().name)
        return fault("a")

    with house.node("a", ALONE, plan) as a:
        joined(a)
        del plan.calls[:]
        a.loop.submit(ToRecord(read))
        a.submit(handlers.end, Why.FAILED)
        assert a.told.get(timeout=ANSWER_S) == Recorded(fault("a"))
        assert a.hears(handlers.end) == Settled()
        assert [name for name in plan.calls if name in ("put", "set")] == ["put", "set"]
    assert house.backend.notes.faults() == (fault("a"),)
    assert threads == ["elastic-rendezvous"]


def test_a_failure_that_cannot_be_put_on_record_is_told_all_the_same(house: House) -> None:
    plan = Plan()
    with house.node("a", ALONE, plan) as a:
        joined(a)
        plan.next("put", out_of_reach)
        a.record(fault("a"))
        assert a.told.get(timeout=ANSWER_S) == Recorded(fault("a"))


def test_a_failure_that_the_store_did_not_take_is_put_on_record_when_the_register_has_moved(house: House) -> None:
    plan = Plan()
    with house.node("a", ALONE, plan) as a:
        joined(a)
        plan.next("put", out_of_reach)
        a.record(fault("a"))
        assert a.told.get(timeout=ANSWER_S) == Recorded(fault("a"))
        assert a.asks(handlers.end, Why.FAILED) == Settled()
        assert comes_true(lambda: house.backend.notes.faults() == (fault("a"),))
        assert told_nothing(a)


@pytest.mark.parametrize("forgets", [True, False])
def test_a_store_that_has_forgotten_a_failure_is_given_it_back_once(house: House, forgets: bool) -> None:
    reads = []

    def read() -> Fault:
        reads.append(1)
        return fault("a")

    with house.node("a", ALONE) as a:
        joined(a)
        a.loop.submit(ToRecord(read))
        assert a.told.get(timeout=ANSWER_S) == Recorded(fault("a"))
        if forgets:
            house.store.logs.clear()
        house.becomes(None)
        _hears_of_a_loss(a)
        assert a.asks(handlers.end, Why.FAILED) == Settled()
        assert house.backend.notes.faults() == (fault("a"),)
        assert told_nothing(a) and reads == [1]


def test_a_join_that_nobody_answers_in_time_is_refused_and_leaves_nothing(house: House) -> None:
    with house.node("a", evolve(PAIR, join_timeout=0.2)) as a:
        answer = a.asks(handlers.join)
        assert isinstance(answer, Raise) and answer.failure == Fail(Why.TIMEOUT)
    state = house.backend.get().state
    assert state is None or not state.seats  # a thread that got no turn in time had not even arrived


# --- what a store may do


@pytest.mark.parametrize("trouble", [lost_on_the_way, answer_lost])
def test_a_write_without_an_answer_is_looked_up_and_made_once(house: House, trouble: Trouble) -> None:
    plan = Plan()
    plan.next("set", trouble)
    with house.node("a", ALONE, plan) as a:
        (world,) = joined(a)
    assert [member.node for member in world.members] == [node("a")]
    state = house.backend.get().state
    assert state and state.version == 1
    assert Counter(plan.calls)["set"] == (2 if trouble is lost_on_the_way else 1)


@pytest.mark.parametrize("trouble", [lost_on_the_way, answer_lost])
def test_an_end_without_an_answer_is_made_once(house: House, trouble: Trouble) -> None:
    plan = Plan()
    settings = evolve(PAIR, limits=Limits(2, 2, 3))
    with house.node("a", settings, plan) as a, house.node("b", settings) as b:
        joined(a, b)
        plan.next("set", trouble)
        assert a.asks(handlers.end, Why.FAILED) == Settled()
        assert isinstance(b.hears(handlers.watch), Over)
        state = house.backend.get().state
    assert state and (state.round, state.failures) == (1, 1)


def test_a_store_out_of_reach_is_asked_again_after_pauses_that_grow_to_a_heartbeat(house: House) -> None:
    """Twice as long from try to try, and no end to that, it would take 200 s."""
    plan, tries = Plan(), 12
    plan.next("get", *[out_of_reach] * tries)
    with house.node("a", ALONE, plan) as a:
        began = time.monotonic()
        joined(a)
        pauses_s = FIRST_PAUSE_S + (tries - 1) * ALONE.keep_alive_interval
        assert pauses_s <= time.monotonic() - began < pauses_s + PROMPT_S
    assert Counter(plan.calls)["get"] == tries + 1


def test_an_outage_of_any_length_is_survived(house: House) -> None:
    plan = Plan()
    plan.next("get", *[out_of_reach] * 1_200)
    with house.node("a", evolve(ALONE, keep_alive_interval=0.0001), plan) as a:
        joined(a)


def test_a_silent_store_is_told_once_and_so_is_its_return(house: House) -> None:
    plan = Plan()
    plan.next("get", *[out_of_reach] * 4)
    with house.node("a", ALONE, plan) as a:
        joined(a)
        told = []
        while not a.news.empty():
            told.append(a.news.get())
    assert [type(news) for news in told] == [StoreSilent, StoreBack, Seen]
    assert isinstance(told[0], StoreSilent) and told[0].text == "nobody listens"


def test_one_question_without_an_answer_is_no_news(house: House) -> None:
    plan = Plan()
    plan.next("get", out_of_reach)
    with house.node("a", ALONE, plan) as a:
        joined(a)
        assert isinstance(a.news.get(timeout=ANSWER_S), Seen)


def test_an_outage_is_waited_out_without_haste(house: House) -> None:
    plan = Plan()
    with house.node("a", PAIR, plan) as a, house.node("b", PAIR) as b:
        joined(a, b)
        plan.out.set()
        a.submit(handlers.done)
        while not isinstance(a.news.get(timeout=ANSWER_S), StoreSilent):
            pass
        began, before = time.monotonic(), len(plan.calls)
        assert told_nothing(a)
        asked = Counter(plan.calls[before:])
        intervals = (time.monotonic() - began) / PAIR.keep_alive_interval
        assert asked["get"] + asked["set"] + asked["look"] + asked["wait"] <= 2 * intervals + 1
        plan.out.clear()
        assert a.hears(handlers.done) == Settled()
        assert isinstance(b.asks(handlers.done), Verdict)
        assert isinstance(a.hears(handlers.watch), Verdict)


def test_a_change_made_during_an_outage_is_seen_after_it(house: House) -> None:
    """The waiter's client was cut off too, and waits again."""
    plan = Plan()
    plan.next("wait", out_of_reach, out_of_reach)
    with house.node("a", PAIR, plan) as a, house.node("b", PAIR) as b:
        joined(a, b)
        b.submit(handlers.leave)
        assert isinstance(a.hears(handlers.watch), Over)


def test_nothing_is_written_over_what_cannot_be_read(house: House) -> None:
    plan = Plan()
    plan.next("get", unreadable)
    with house.node("a", ALONE, plan) as a:
        answer = a.asks(handlers.join)
        assert isinstance(answer, Raise) and answer.failure == Fail(Why.ILLEGAL)
        assert "holds garbage" in answer.text
        assert told_nothing(a)
    assert "set" not in plan.calls


def test_workers_run_on_while_the_register_cannot_be_read_but_nothing_is_written(house: House) -> None:
    plan = Plan()
    with house.node("a", ALONE, plan) as a:
        joined(a)
        for question in ("wait", "get"):
            plan.next(question, *[unreadable] * 10_000)
        house.becomes(apply(_state(house), Leave(), node("x")))
        while not isinstance(a.news.get(timeout=ANSWER_S), StoreSilent):
            pass
        assert told_nothing(a)
        answer = a.asks(handlers.done)
        assert isinstance(answer, Raise) and answer.failure == Fail(Why.ILLEGAL)
        assert "holds garbage" in answer.text
    assert Counter(plan.calls)["set"] == 1


def test_a_store_that_came_back_empty_is_given_back_what_a_node_holds_and_nothing_else_happens(house: House) -> None:
    with house.node("a", PAIR) as a, house.node("b", PAIR) as b:
        joined(a, b)
        before = _state(house)
        house.becomes(None)
        lost = [_hears_of_a_loss(each) for each in (a, b)]
        assert sorted((news.by_me, news.found) for news in lost) == [(False, None), (True, None)]
        after = _state(house)
        assert (after.job, after.world_id, after.life.epoch) == (before.job, before.world_id, before.life.epoch + 1)
        assert told_nothing(a) and told_nothing(b)
        b.submit(handlers.leave)
        assert isinstance(a.hears(handlers.watch), Over)


def test_a_store_that_came_back_older_is_given_back_what_a_node_holds(house: House) -> None:
    with house.node("a", PAIR) as a, house.node("b", PAIR) as b:
        joined(a, b)
        newest = _state(house)
        house.becomes(arrived(blank(newest.life, newest.limits), "a"))
        _hears_of_a_loss(a)
        assert _state(house).world_id == newest.world_id
        assert told_nothing(a) and told_nothing(b)


def test_a_world_of_another_job_is_left_alone_and_joined(house: House) -> None:
    with house.node("a", ALONE) as a:
        joined(a)
        house.becomes(born("other"))  # which waits for more nodes: what a holds counts more
        _hears_of_a_loss(a)
        assert _state(house).job != "other"
        begun = arrived(blank(Life("elsewhere"), ALONE.limits), "z")
        house.becomes(begun)
        assert _hears_of_a_loss(a).after == begun
        assert isinstance(a.hears(handlers.watch), Over)
    assert _state(house) == begun


def _hears_of_a_loss(peer: Peer) -> Restored:
    while not isinstance(news := peer.news.get(timeout=ANSWER_S), Restored):
        pass
    return news


# --- at rest


def _asked_at_rest(house: House, peer: Peer, plan: Plan) -> list[str]:
    """What it asks for a while, but for its heartbeat, once its waiter waits for what follows the state that stands. (Its
    heart looks once, before the first beat.)"""
    assert comes_true(lambda: plan.waits_on is not None and plan.waits_on == _state(house).token)
    assert comes_true(lambda: "beat" in plan.calls)
    before = len(plan.calls)
    assert told_nothing(peer)
    return [name for name in plan.calls[before:] if name != "beat"]


def test_a_loop_without_an_operation_asks_nothing(house: House) -> None:
    plan = Plan()
    with house.node("a", ALONE, plan) as a:
        assert told_nothing(a)
        assert Counter(plan.calls)["get"] + Counter(plan.calls)["wait"] + Counter(plan.calls)["set"] == 0


def test_a_watch_without_others_asks_once_and_waits(house: House) -> None:
    plan = Plan()
    with house.node("a", ALONE, plan) as a:
        joined(a)
        assert _asked_at_rest(house, a, plan) == []


def test_a_watch_looks_at_heartbeats_once_an_interval(house: House) -> None:
    plan = Plan()
    with house.node("a", PAIR, plan) as a, house.node("b", PAIR) as b:
        joined(a, b)
        began = time.monotonic()
        calls = _asked_at_rest(house, a, plan)
        intervals = (time.monotonic() - began) / PAIR.keep_alive_interval
        assert set(calls) == {"look"} and len(calls) <= intervals + 1


def test_a_pending_join_waits_without_asking(house: House) -> None:
    plan = Plan()
    with house.node("a", PAIR, plan) as a:
        a.submit(handlers.join)
        assert _asked_at_rest(house, a, plan) == []


def test_the_register_is_written_by_one_thread_alone(house: House) -> None:
    plan = Plan()
    with house.node("a", ALONE, plan) as a:
        joined(a)
    assert plan.threads <= {"elastic-rendezvous", "elastic-waiter", "elastic-heart"}


def test_a_program_that_ends_does_not_wait_for_its_threads(house: House) -> None:
    with house.node("a", ALONE) as a:
        joined(a)
        daemons = {each.name: each.daemon for each in threading.enumerate() if each.name.startswith("elastic-")}
    assert daemons.keys() >= {"elastic-rendezvous", "elastic-waiter"}
    assert all(daemons.values())


# --- what the client is fed, by a clock that only the store moves on

ANSWERED_IN_S = 7.0


class Ticking(SystemClock):
    """A clock that stands still but while the store answers."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at


class Slow(Planned):
    """A backend each of whose answers takes `ANSWERED_IN_S` by that clock. `here`: what it shows was written there."""

    def __init__(self, behind: Backend, plan: Plan, clock: Ticking, here: bool = True) -> None:
        super().__init__(behind, plan)
        self._clock, self._here = clock, here

    def get(self) -> Shown:
        return self._answered(super().get())

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        return self._answered(super().set(state, token))

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        return self._answered(super().wait_for_change(token, until))

    def clone(self) -> Slow:
        return Slow(self._behind.clone(), self._plan, self._clock, self._here)

    def _answered(self, shown: Shown) -> Shown:
        self._clock.at += ANSWERED_IN_S
        return evolve(shown, here=self._here)


@frozen
class Step:
    """One step of the client: what it was fed, when, and what it asks for."""

    input: Input
    at: float
    ask: Ask | None


@contextmanager
def stepping(
    house: House, plan: Plan, here: bool = True, settings: Settings = ALONE
) -> Iterator[tuple[RendezvousLoop, SimpleQueue[Step]]]:
    """A loop whose stall detector goes by that clock too."""
    clock, steps = Ticking(), SimpleQueue[Step]()
    held = Held(Who(node("a"), profile("a"), settings, Life("life")))
    loop = RendezvousLoop(
        Slow(house.backend, plan, clock, here),
        held,
        clock,
        lambda notice: None,
        escapes,
        lambda function, input, now, ask: steps.put(Step(input, now, ask)),
    )
    loop._stall_detector = StallDetector(settings.ttl, clock.now, clock.now)
    loop.start()
    try:
        yield loop, steps
    finally:
        loop.stop()


def until(steps: SimpleQueue[Step], wanted: Callable[[Step], bool]) -> list[Step]:
    """Return the next steps up to the first that is wanted."""
    taken = [steps.get(timeout=ANSWER_S)]
    while not wanted(taken[-1]):
        taken.append(steps.get(timeout=ANSWER_S))
    return taken


def is_armed(step: Step) -> bool:
    return isinstance(step.ask, Wait) and step.ask.arm


@pytest.mark.parametrize("question", [Look, Write])
def test_an_answer_is_taken_after_its_question_was_sent(house: House, question: type) -> None:
    with stepping(house, Plan()) as (loop, steps):
        loop.submit(Request(handlers.join))
        taken = until(steps, is_armed)
    spans = [answer.at - asked.at for asked, answer in pairwise(taken) if isinstance(asked.ask, question)]
    assert spans and set(spans) == {ANSWERED_IN_S}


def test_a_push_counts_from_when_it_was_waited_for_and_says_where_the_register_was_written(house: House) -> None:
    with stepping(house, Plan(), here=False) as (loop, steps):
        loop.submit(Request(handlers.join))
        armed = until(steps, is_armed)[-1]
        house.becomes(apply(_state(house), Arrive(profile("b")), node("b")))
        pushed = until(steps, lambda step: isinstance(step.input, Pushed))[-1]
    assert isinstance(pushed.input, Pushed)
    assert (pushed.input.sent_at, pushed.at, pushed.input.here) == (armed.at, armed.at + ANSWERED_IN_S, False)


@pytest.mark.parametrize(("answer", "heard"), [(given, [Submitted, Shown]), (out_of_reach, [Silent, Submitted])])
def test_what_is_said_while_a_question_is_out_is_heard_before_its_answer_and_cuts_the_pause_after_none(
    house: House, answer: Trouble, heard: list[type]
) -> None:
    plan, asked, go = Plan(), threading.Event(), threading.Event()

    def late(call: Callable[[], object]) -> object:
        asked.set()
        return answer(_after(go, call))

    plan.next("get", late)
    with stepping(house, plan) as (loop, steps):
        loop.submit(Request(handlers.join))
        assert asked.wait(ANSWER_S)
        loop.submit(Request(handlers.leave))
        go.set()
        taken = [steps.get(timeout=ANSWER_S).input for _ in range(4)]
    assert [type(each) for each in taken] == [Submitted, Drawn, *heard]


@pytest.mark.parametrize(("attempts", "before"), [(10, Woke), (1_000, Drawn)])
def test_a_loop_that_stood_still_knows_it_before_it_hears_the_answer(house: House, attempts: int, before: type) -> None:
    """The answer takes longer than one TTL, and not as long as the other."""
    with stepping(house, Plan(), settings=evolve(ALONE, keep_alive_max_attempt=attempts)) as (loop, steps):
        loop.submit(Request(handlers.join))
        *_, told, _ = until(steps, lambda step: isinstance(step.input, Shown))
    assert isinstance(told.input, before)


def test_the_waiter_waits_once_for_each_version(house: House) -> None:
    plan = Plan()
    with stepping(house, plan) as (loop, steps):
        loop.submit(Request(handlers.join))
        until(steps, is_armed)
        for _ in range(3):
            loop.submit(ToRecord(lambda: fault("a")))
            until(steps, lambda step: isinstance(step.ask, Wait))
    assert plan.calls.count("wait") == 1


def test_what_was_to_be_done_at_a_time_that_has_passed_is_done_at_once(house: House) -> None:
    """The loop stood still between its decision to pause and the pause."""
    clock, plan, fed = Ticking(), Plan(), SimpleQueue[Input]()
    plan.next("get", out_of_reach)

    def took(function: object, input: Input, now: float, ask: Ask | None) -> None:
        fed.put(input)
        if isinstance(ask, Pause):
            clock.at = ask.until + 1.0

    held = Held(Who(node("a"), profile("a"), ALONE, Life("life")))
    loop = RendezvousLoop(Planned(house.backend, plan), held, clock, lambda notice: None, escapes, took)
    loop.submit(Request(handlers.join))
    loop.start()
    try:
        assert [type(fed.get(timeout=ANSWER_S)) for _ in range(4)] == [Submitted, Drawn, Silent, Passed]
    finally:
        loop.stop()


# --- the end


def _idle(peer: Peer, plan: Plan) -> None:
    pass


def _joining(peer: Peer, plan: Plan) -> None:
    peer.submit(handlers.join)
    assert told_nothing(peer, for_s=0.05)


def _watching(peer: Peer, plan: Plan) -> None:
    joined(peer)


def _cut_off(peer: Peer, plan: Plan) -> None:
    plan.out.set()
    peer.submit(handlers.join)
    assert told_nothing(peer, for_s=0.05)


def _refused(peer: Peer, plan: Plan) -> None:
    """The refusal comes a pause after the garbage; the loop is stopped in it, or just after."""
    plan.next("get", unreadable)
    peer.submit(handlers.join)
    assert comes_true(lambda: "get" in plan.calls)


@pytest.mark.parametrize(
    ("settings", "begin"), [(ALONE, _idle), (PAIR, _joining), (ALONE, _watching), (PAIR, _cut_off), (PAIR, _refused)]
)
def test_stopping_is_prompt_in_every_state(
    house: House, settings: Settings, begin: Callable[[Peer, Plan], None]
) -> None:
    plan, before = Plan(), set(threading.enumerate())
    with house.node("a", evolve(settings, keep_alive_interval=600.0), plan) as a:
        begin(a, plan)
        began = time.monotonic()
        a.loop.stop()
        assert time.monotonic() - began < PROMPT_S
        a.loop.stop()
    assert set(threading.enumerate()) <= before


def test_what_the_agent_says_is_heard_before_what_a_link_or_a_store_tells(house: House) -> None:
    """A loop that stood still hears of its worker's failure before it may end the round for a newcomer."""
    heard: list[Input] = []
    held = Held(Who(node("a"), profile("a"), ALONE, Life("lifea")))
    loop = RendezvousLoop(
        house.backend, held, SystemClock(), lambda notice: None, escapes, lambda step, fed, *of: heard.append(fed)
    )
    loop.hear_of_link(Linked(node("b"), Says.SUSPECT, 0.0))
    loop.submit(Request(handlers.join))
    loop.start()
    try:
        assert comes_true(lambda: len(heard) > 1)
    finally:
        loop.stop()
    assert [type(each) for each in heard[:2]] == [Submitted, Linked]


@pytest.mark.parametrize("question", ["get", "wait"])
def test_an_error_that_nobody_foresaw_in_a_thread_of_it_is_told(house: House, question: str) -> None:
    def slip(call: Callable[[], object]) -> object:
        raise ZeroDivisionError("a slip")

    plan, errors = Plan(), SimpleQueue[BaseException]()
    plan.next(question, slip)
    held = Held(Who(node("a"), profile("a"), ALONE, Life("lifea")))
    loop = RendezvousLoop(Planned(house.backend, plan), held, SystemClock(), lambda notice: None, errors.put)
    loop.start()
    try:
        loop.submit(Request(handlers.join))
        assert isinstance(errors.get(timeout=ANSWER_S), ZeroDivisionError)
    finally:
        loop.stop()


def test_stopping_waits_for_what_is_under_way(house: House) -> None:
    plan, asked, go = Plan(), threading.Event(), threading.Event()

    def late(call: Callable[[], object]) -> object:
        asked.set()
        return _after(go, call)()

    plan.next("get", late)
    with house.node("a", ALONE, plan) as a:
        a.submit(handlers.join)
        assert asked.wait(ANSWER_S)
        later = threading.Timer(IDLE_S, go.set)
        later.start()
        a.loop.stop()
        assert go.is_set()
        later.join()


def test_a_loop_that_never_started_stops(house: House) -> None:
    Peer(house.backend, "a", ALONE).loop.stop()


def test_an_operation_submitted_after_the_end_is_nothing(house: House) -> None:
    with house.node("a", ALONE) as a:
        a.loop.stop()
        a.loop.submit(Request(handlers.join))
        assert told_nothing(a, for_s=0.05)


def _after(event: threading.Event, value: Answer) -> Answer:
    assert event.wait(ANSWER_S)
    return value


def _state(house: House) -> RendezvousState:
    state = house.backend.get().state
    assert state
    return state
