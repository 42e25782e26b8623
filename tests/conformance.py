"""What every backend must do: one suite, run over each of them (the port: adapters/store/port.py).

A test file makes a class of it and says how a client is made:

    class TestMemory(Conformance):
        @pytest.fixture
        def client(self) -> Iterator[Clients]: ...
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from typing import Any, TypeVar

import pytest
from attrs import evolve
from msgspec.structs import force_setattr
from processes import comes_true
from worlds import arrived, edited, node, profile, register

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.heart import Heart
from elastic.adapters.rendezvous.loop import RendezvousLoop, ToRecord
from elastic.adapters.report.news import (
    LoopNotice,
    Recorded,
    Restored,
    Seen,
    StoodStill,
    StoreBack,
    StoreSilent,
    Told,
    Trace,
)
from elastic.adapters.store.notes import (
    ENDED,
    FAULTS,
    STACKS,
    STANDBYS,
    TIMES,
    UNFIT,
    UNFIT_MAX,
    EarlyEnds,
    StandbyNote,
)
from elastic.adapters.store.port import Backend, Log, OutcomeUnknown, OutOfReach
from elastic.adapters.store.queries import Query, Replies, Reply
from elastic.core.goodput import NodeRecord, Spent
from elastic.core.rendezvous import (
    Arrive,
    Done,
    Held,
    Leave,
    Limits,
    Outcome,
    Over,
    Proposal,
    Raise,
    RendezvousState,
    Settings,
    Settled,
    Token,
    Who,
    handlers,
)
from elastic.core.rendezvous.agenda import Request
from elastic.core.rendezvous.context import Handler
from elastic.core.world import Ending, Fault, Life, Origin, Profile, Stacks, Unfit, Verdict, Why, World

Clients = Callable[[], Backend]
"""Makes another client of the test's one store; the fixture closes them all."""
AgentClients = Callable[[], Backend]

SOON_S = 20.0
"""How late what is pushed may come on a machine that is busy, or stands still for some seconds. What is never pushed comes
later, or never."""
TURN_S = 0.25
"""How long most waits for a write take at most where it is pushed; at any sensible period of polling they take longer. On a
machine so busy that a write alone takes long, a wait may last for several, and never for as long as PERIOD_S."""
PERIOD_S = 1.0
"""Who polls at this period or a longer one is found out, however long a write takes: each of most waits lasts for one."""
STOPS_S = 10.0
"""An interval of heartbeats, and so how long a heart that stops may take to say goodbye."""
ERAS = 140
"""More than one question may name keys."""
ANSWER_S = 60.0
"""No answer comes later than this in a test that passes."""


def born(life: str = "life", who: str = "a") -> RendezvousState:
    """The first state of a register that waits for many nodes."""
    return arrived(evolve(register("9:9"), life=Life(life)), who)


def grown(state: RendezvousState, who: str) -> RendezvousState:
    """The next state."""
    return arrived(state, who)


def fault(of: str, round: int = 0, message: str = "boom") -> Fault:
    return Fault(
        node=node(of),
        round=round,
        rank=3,
        local_rank=1,
        pid=4242,
        exit_code=-11,
        after_s=1.5,
        host="host",
        when="2026-01-01 00:00:00",
        message=message,
        where="x.py:1",
        log="/log",
        tail=("a", "b"),
    )


@contextmanager
def short(log: Log[Any], half: int) -> Iterator[None]:
    """Let this log keep so many of its first and of its last records: to fill it takes a minute."""
    sizes = log.first, log.last
    try:
        for name in ("first", "last"):
            force_setattr(log, name, half)  # type: ignore[arg-type]  # a struct, where it runs
        yield
    finally:
        for name, size in zip(("first", "last"), sizes, strict=True):
            force_setattr(log, name, size)  # type: ignore[arg-type]  # a struct, where it runs


def escapes(error: BaseException) -> None:
    """Let an error out of a thread: pytest tells of it."""
    raise error


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What these calls return, begun together in a thread each."""
    gate = threading.Barrier(len(calls))

    def begin(call: Callable[[], object]) -> object:
        gate.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(begin, calls))


Answer = TypeVar("Answer")


def persistent(ask: Callable[[], Answer]) -> Answer:
    """The answer to what is asked as the loop asks: again, while there is none, or nobody knows whether a write landed."""
    ends_at = time.monotonic() + ANSWER_S
    while True:
        try:
            return ask()
        except (OutOfReach, OutcomeUnknown):
            if time.monotonic() >= ends_at:
                raise
            time.sleep(0.05)


class Waiting:
    """A wait in a thread of its own; made when that thread sleeps in it."""

    def __init__(self, wait: Callable[[], RendezvousState | None]) -> None:
        self._answers: SimpleQueue[tuple[RendezvousState | None, float]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(wait,), daemon=True)
        self._thread.start()
        assert comes_true(self._sleeps)

    def _run(self, wait: Callable[[], RendezvousState | None]) -> None:
        state = wait()
        self._answers.put((state, time.monotonic()))

    def _sleeps(self) -> bool:
        try:
            return Path(f"/proc/self/task/{self._thread.native_id}/stat").read_text().rpartition(") ")[2][0] == "S"
        except OSError:
            return True  # over already

    def answer(self, since: float) -> tuple[RendezvousState | None, float]:
        """What it returned, and how long after this point in time."""
        state, at = self._answers.get(timeout=ANSWER_S)
        self._thread.join()
        return state, at - since


class Peer:
    """One node of a real protocol run, without workers: the loop, the heart, and what they tell."""

    def __init__(
        self, backend: Backend, name: str, settings: Settings, life: str = "life", trace: Trace | None = None
    ) -> None:
        self.node = node(name)
        self.backend = backend
        self.profile = profile(name)
        self.told: SimpleQueue[Told | Recorded] = SimpleQueue()
        self.news: SimpleQueue[Seen | StoreSilent | StoreBack | Restored | StoodStill] = SimpleQueue()
        held = Held(Who(self.node, self.profile, settings, Life(life)))
        took = trace.took if trace else lambda *given: None
        self.loop = RendezvousLoop(backend, held, SystemClock(), self._post, escapes, took)
        interval_s = settings.keep_alive_interval
        self.heart = Heart(backend, self.node, interval_s, SystemClock(), lambda sent_at, life: None, escapes)

    def __enter__(self) -> Peer:
        self.loop.start()
        self.heart.start()
        return self

    def __exit__(self, *of: object) -> None:
        self.loop.stop()
        self.heart.stop()

    def submit(
        self,
        handler: Handler,
        why: Why = Why.ASKED,
        ending: Ending = Ending.CANCELLED,
        profile: Profile | None = None,
    ) -> None:
        self.loop.submit(Request(handler, why, ending, profile))

    def record(self, fault: Fault) -> None:
        self.loop.submit(ToRecord(lambda: fault))

    def _post(self, notice: LoopNotice) -> None:
        if isinstance(notice, Told | Recorded):
            self.told.put(notice)
        else:
            self.news.put(notice)

    def hears(self, handler: Handler) -> Outcome | Raise:
        """The next that is told; it must be of this operation."""
        told = self.told.get(timeout=ANSWER_S)
        assert isinstance(told, Told) and told.handler is handler, told
        return told.answer

    def asks(self, handler: Handler, why: Why = Why.ASKED, ending: Ending = Ending.CANCELLED) -> Outcome | Raise:
        self.submit(handler, why, ending)
        return self.hears(handler)


class Conformance:
    """The claims. `client` makes clients of one empty store."""

    @pytest.fixture
    def client(self) -> Iterator[Clients]:
        raise NotImplementedError("say how this backend's clients are made")

    # --- the register

    def test_a_register_that_nobody_wrote_is_absent(self, client: Clients) -> None:
        assert client().get().state is None

    def test_what_was_written_is_what_everybody_reads(self, client: Clients) -> None:
        state = born()
        assert client().set(state, None).state == state
        assert client().get().state == state

    def test_of_many_first_writes_one_lands_and_everybody_gets_that_one(self, client: Clients) -> None:
        states = [born(f"life{number}", f"n{number}") for number in range(16)]
        clients = [client() for _ in states]
        stand = at_once(*(lambda c=c, s=s: c.set(s, None).state for c, s in zip(clients, states, strict=True)))
        assert stand[0] in states
        assert all(one == stand[0] for one in stand)
        assert client().get().state == stand[0]

    def test_of_many_next_writes_one_lands_and_everybody_gets_that_one(self, client: Clients) -> None:
        first = born()
        client().set(first, None)
        states = [grown(first, f"n{number}") for number in range(16)]
        clients = [client() for _ in states]
        stand = at_once(*(lambda c=c, s=s: c.set(s, first.token).state for c, s in zip(clients, states, strict=True)))
        assert stand[0] in states
        assert all(one == stand[0] for one in stand)
        assert client().get().state == stand[0]

    def test_a_write_on_an_old_token_is_refused_and_shows_what_stands(self, client: Clients) -> None:
        first, late = client(), client()
        one = born()
        two = grown(one, "b")
        three = grown(two, "c")
        first.set(one, None)
        first.set(two, one.token)
        first.set(three, two.token)
        assert late.set(grown(one, "z"), one.token).state == three
        assert late.set(grown(two, "z"), two.token).state == three
        assert client().get().state == three

    def test_a_write_on_a_very_old_token_is_refused_too(self, client: Clients) -> None:
        writer, late = client(), client()
        one = state = born()
        writer.set(state, None)
        late.get()
        for _ in range(60):
            before, state = state, _bumped(state)
            assert writer.set(state, before.token).state == state
        assert late.set(grown(one, "z"), one.token).state == state
        assert client().set(grown(one, "y"), one.token).state == state
        assert client().get().state == state

    def test_a_first_write_where_something_stands_is_refused(self, client: Clients) -> None:
        one = born()
        client().set(one, None)
        assert client().set(born("other", "z"), None).state == one
        assert client().get().state == one

    def test_a_token_of_another_life_is_refused(self, client: Clients) -> None:
        one = born()
        client().set(one, None)
        other = born("other")
        assert client().set(grown(other, "z"), other.token).state == one
        assert client().get().state == one

    def test_a_write_on_a_register_that_is_absent_is_refused(self, client: Clients) -> None:
        one = born()
        assert client().set(grown(one, "b"), one.token).state is None
        assert client().get().state is None

    def test_a_state_with_many_seats_survives(self, client: Clients) -> None:
        names = " ".join(f"node-{number:03d}" for number in range(512))
        state = arrived(register("512"), names)
        one = evolve(state, version=1, stale_before=0, quorum_at=None, complete=False)
        client().set(one, None)
        assert client().get().state == one

    # --- waiting

    def test_a_wait_for_what_has_come_already_returns_at_once(self, client: Clients) -> None:
        one = born()
        client().set(one, None)
        began = time.monotonic()
        assert client().wait_for_change(None, math.inf).state == one
        assert client().wait_for_change(born("other").token, math.inf).state == one
        assert time.monotonic() - began < SOON_S

    def test_a_waiter_is_woken_by_the_first_write(self, client: Clients) -> None:
        waiter, writer = client(), client()
        waiting = Waiting(lambda: waiter.wait_for_change(None, math.inf).state)
        began = time.monotonic()
        writer.set(born(), None)
        state, took_s = waiting.answer(began)
        assert state == born() and took_s < SOON_S

    def test_a_waiter_is_woken_by_the_next_write(self, client: Clients) -> None:
        waiter, writer = client(), client()
        one = born()
        two = grown(one, "b")
        writer.set(one, None)
        waiting = Waiting(lambda: waiter.wait_for_change(born().token, math.inf).state)
        began = time.monotonic()
        writer.set(two, born().token)
        state, took_s = waiting.answer(began)
        assert state == two and took_s < SOON_S

    def test_many_waiters_are_woken_by_one_write(self, client: Clients) -> None:
        one = born()
        two = grown(one, "b")
        writer, waiters = client(), [client() for _ in range(8)]
        writer.set(one, None)
        waits = [Waiting(lambda waiter=waiter: waiter.wait_for_change(one.token, math.inf).state) for waiter in waiters]  # type: ignore[misc]
        began = time.monotonic()
        writer.set(two, one.token)
        for waiting in waits:
            state, took_s = waiting.answer(began)
            assert state == two and took_s < SOON_S

    def test_changes_are_pushed_not_polled(self, client: Clients) -> None:
        """Two clients take turns: each waits for the other's write. Polling would cost a period for each of them; a machine
        that stands still costs a few of them more."""
        one, turns = born(), 40
        waits_s: list[float] = []
        writes_s: list[float] = []
        client().set(one, None)

        def play(backend: Backend, odd: int) -> None:
            state: RendezvousState | None = one
            while state is not None and state.version < turns:
                began = time.monotonic()
                if state.version % 2 == odd:
                    state = backend.set(_bumped(state), state.token).state
                    writes_s.append(time.monotonic() - began)
                else:
                    before = state
                    state = backend.wait_for_change(state.token, began + ANSWER_S).state
                    waits_s.append(time.monotonic() - began)
                    assert state != before, "nobody tells of a change"

        at_once(lambda: play(client(), 0), lambda: play(client(), 1))
        assert median(waits_s) < min(max(TURN_S, 5 * median(writes_s)), PERIOD_S)

    def test_a_wait_returns_at_its_end_with_what_stands(self, client: Clients) -> None:
        waiter = client()
        one = born()
        client().set(one, None)
        began = time.monotonic()
        assert waiter.wait_for_change(one.token, began + 0.1).state == one
        assert 0.1 <= time.monotonic() - began < SOON_S

    def test_a_wait_for_the_first_write_returns_at_its_end(self, client: Clients) -> None:
        began = time.monotonic()
        assert client().wait_for_change(None, began + 0.1).state is None
        assert 0.1 <= time.monotonic() - began < SOON_S

    def test_a_wait_until_a_past_time_returns_at_once(self, client: Clients) -> None:
        one = born()
        client().set(one, None)
        began = time.monotonic()
        assert client().wait_for_change(one.token, began - 1).state == one
        assert time.monotonic() - began < SOON_S

    def test_the_same_client_goes_on_after_a_wait_that_found_nothing(self, client: Clients) -> None:
        one = born()
        waiter = client()
        waiter.set(one, None)
        waiter.wait_for_change(one.token, time.monotonic() + 0.05)
        two = grown(one, "b")
        assert waiter.set(two, one.token).state == two
        assert client().get().state == two

    def test_closing_a_client_from_another_thread_ends_its_wait(self, client: Clients) -> None:
        waiter = client()
        one = born()
        waiter.set(one, None)
        waiting = Waiting(lambda: waiter.wait_for_change(one.token, math.inf).state)
        began = time.monotonic()
        waiter.close()
        state, took_s = waiting.answer(began)
        assert state == one and took_s < SOON_S

    def test_closing_a_client_ends_its_wait_for_the_first_write(self, client: Clients) -> None:
        waiter = client()
        waiting = Waiting(lambda: waiter.wait_for_change(None, math.inf).state)
        began = time.monotonic()
        waiter.close()
        state, took_s = waiting.answer(began)
        assert state is None and took_s < SOON_S

    def test_a_wait_in_a_closed_client_returns_at_once(self, client: Clients) -> None:
        waiter = client()
        one = born()
        waiter.set(one, None)
        waiter.close()
        assert waiter.wait_for_change(one.token, math.inf).state == one

    # --- heartbeats

    def test_a_node_that_never_beat_has_no_heartbeat(self, client: Clients) -> None:
        assert client().heartbeats([node("a"), node("b#7")]).counters == {node("a"): None, node("b#7"): None}
        assert client().heartbeats([]).counters == {}

    def test_heartbeats_move_for_everybody(self, client: Clients) -> None:
        heart, observer = client(), client()
        heart.heartbeat(node("a"), 1)
        client().heartbeat(node("b"), 10)
        assert observer.heartbeats([node("a"), node("b"), node("c")]).counters == {
            node("a"): 1,
            node("b"): 10,
            node("c"): None,
        }
        heart.heartbeat(node("a"), 2)
        assert observer.heartbeats([node("a"), node("b"), node("c")]).counters == {
            node("a"): 2,
            node("b"): 10,
            node("c"): None,
        }

    def test_the_heartbeats_of_many_nodes_are_read_at_once(self, client: Clients) -> None:
        client().heartbeat(node("n7"), 3)
        nodes = [node(f"n{number}") for number in range(ERAS)]
        assert client().heartbeats(nodes).counters == {**dict.fromkeys(nodes), node("n7"): 3}

    def test_incarnations_have_heartbeats_of_their_own(self, client: Clients) -> None:
        client().heartbeat(node("a"), 5)
        assert client().heartbeats([node("a#2")]).counters == {node("a#2"): None}

    def test_a_removed_heartbeat_is_gone_and_may_begin_again(self, client: Clients) -> None:
        heart, observer = client(), client()
        heart.heartbeat(node("a"), 1)
        observer.heartbeats([node("a")])
        heart.remove_heartbeat(node("a"))
        assert observer.heartbeats([node("a")]).counters == {node("a"): None}
        heart.heartbeat(node("a"), 2)
        assert observer.heartbeats([node("a")]).counters == {node("a"): 2}

    def test_removing_a_heartbeat_that_is_not_there_is_nothing(self, client: Clients) -> None:
        client().remove_heartbeat(node("a"))
        assert client().heartbeats([node("a")]).counters == {node("a"): None}

    # --- proposals

    def test_nobody_proposes_at_first(self, client: Clients) -> None:
        client().set(born(), None)
        assert client().notes.proposals([node("a"), node("b#7")]) == {}
        assert client().notes.proposals([]) == {}

    def test_what_nodes_propose_is_known_to_all_and_counted(self, client: Clients) -> None:
        one, two = client(), client()
        one.set(state := born(), None)
        proposals = {node(of): Proposal(state.era, Arrive(profile(of))) for of in ("a", "b#2", "c")}
        counts = [
            (one if index % 2 else two).notes.put_proposal(of, proposal)
            for index, (of, proposal) in enumerate(proposals.items())
        ]
        assert counts == [1, 2, 3]
        assert client().notes.proposals([*proposals, node("b")]) == proposals
        assert client().notes.proposals([node("c")]) == {node("c"): proposals[node("c")]}

    def test_a_proposal_takes_the_place_of_the_last_one_and_each_kind_is_counted_by_itself(
        self, client: Clients
    ) -> None:
        one, two = client(), client()
        one.set(state := born(), None)
        back, mark = Proposal(state.era, Arrive(profile("a"))), Proposal(state.era, Done(0))
        later = Proposal(Token(state.life, state.version + 5), Arrive(profile("a", 4711)))
        assert [one.notes.put_proposal(node("a"), proposal) for proposal in (back, mark, later)] == [1, 1, 1]
        assert two.notes.put_proposal(node("b"), later) == 2
        assert client().notes.proposals([node("a"), node("b")]) == {node("a"): later, node("b"): later}

    def test_who_has_proposed_in_many_eras_reads_what_all_propose_in_this_one(self, client: Clients) -> None:
        one = client()
        one.set(state := born(), None)
        eras = [Token(state.life, version) for version in range(ERAS)]
        assert [one.notes.put_proposal(node("a"), Proposal(era, Done(0))) for era in eras] == [1] * ERAS
        for _ in range(3):
            assert one.notes.proposals([node("a")]) == {node("a"): Proposal(eras[-1], Done(0))}
        assert client().notes.put_proposal(node("b"), Proposal(eras[-1], Done(0))) == 2

    def test_who_comes_late_with_a_proposal_of_before_changes_no_count_of_this_era(self, client: Clients) -> None:
        one, other = client(), client()
        one.set(state := born(), None)
        first, again = Proposal(state.era, Done(0)), Proposal(Token(state.life, state.version + 5), Done(1))
        assert [one.notes.put_proposal(node(of), first) for of in "abc"] == [1, 2, 3]
        assert one.notes.put_proposal(node("a"), again) == 1
        one.notes.put_proposal(node("b"), first)
        assert other.notes.put_proposal(node("d"), again) == 2
        assert [one.notes.put_proposal(node(of), again) for of in "bc"] == [3, 4]

    def test_who_proposes_to_enter_is_found_by_its_era(self, client: Clients) -> None:
        one, two = client(), client()
        one.set(state := born(), None)
        enter = {node(of): Proposal(state.era, Arrive(profile(of)), enters=True) for of in ("b", "c#2", "d")}
        back = Proposal(state.era, Arrive(profile("a")))
        assert one.notes.proposals([], state.era) == {}
        assert [one.notes.put_proposal(of, proposal) for of, proposal in enter.items()] == [1, 2, 3]
        assert two.notes.put_proposal(node("a"), back) == 1
        assert two.notes.proposals([], state.era) == enter
        assert two.notes.proposals([node("a")], state.era) == {node("a"): back, **enter}
        assert two.notes.proposals([node("a")]) == {node("a"): back}

    def test_who_proposes_to_enter_again_is_found_once_and_in_the_last_era_only(self, client: Clients) -> None:
        one, two = client(), client()
        one.set(state := born(), None)
        later = Token(state.life, state.version + 5)
        first, again = (Proposal(state.era, Arrive(profile("b", port)), enters=True) for port in (1, 2))
        assert [one.notes.put_proposal(node("b"), first), one.notes.put_proposal(node("b"), again)] == [1, 2]
        assert two.notes.proposals([], state.era) == {node("b"): again}
        moved = Proposal(later, Arrive(profile("b")), enters=True)
        assert one.notes.put_proposal(node("b"), moved) == 1
        assert two.notes.proposals([], later) == {node("b"): moved}
        assert two.notes.proposals([], state.era) == {}

    @pytest.mark.parametrize("enters", [False, True], ids=["back", "enter"])
    def test_of_many_who_propose_at_once_one_is_told_that_it_is_the_last(self, client: Clients, enters: bool) -> None:
        one = client()
        one.set(state := born(), None)
        names = [f"n{number}" for number in range(16)]
        clients, counts = [client() for _ in names], SimpleQueue[int]()
        puts = [
            lambda c=c, of=of: counts.put(
                c.notes.put_proposal(node(of), Proposal(state.era, Arrive(profile(of)), enters))
            )
            for c, of in zip(clients, names, strict=True)
        ]
        at_once(*puts)
        assert sorted(counts.get(timeout=ANSWER_S) for _ in names) == list(range(1, 17))
        assert len(one.notes.proposals([], state.era) if enters else one.notes.proposals(map(node, names))) == 16

    def test_a_node_that_goes_takes_its_proposal_along(self, client: Clients) -> None:
        one, heart = client(), client()
        one.set(state := born(), None)
        back = Proposal(state.era, Done(0))
        assert [one.notes.put_proposal(node(of), back) for of in "ab"] == [1, 2]
        heart.heartbeat(node("a"), 1)
        heart.remove_heartbeat(node("a"))
        assert client().notes.proposals([node("a"), node("b")]) == {node("b"): back}

    # --- faults

    def test_a_job_begins_without_faults(self, client: Clients) -> None:
        assert client().notes.faults() == ()

    def test_faults_come_by_round_and_within_one_in_the_order_in_which_they_were_put(self, client: Clients) -> None:
        one, two = client(), client()
        put = [fault("b", 1), fault("a", 0, "first"), fault("b", 0, "second"), fault("a", 0, "third"), fault("a", 1)]
        for number, each in enumerate(put):
            (one if number % 2 else two).notes.add(FAULTS, each)
        assert client().notes.faults() == (put[1], put[2], put[3], put[0], put[4])

    def test_two_records_of_a_failure_count_once_in_the_place_of_the_first(self, client: Clients) -> None:
        one, other = client(), fault("b")
        raised = evolve(fault("a", message="ValueError: boom"), exit_code=None, origin=Origin.RAISE, at_s=7.5)
        ended = evolve(raised, exit_code=-6, message="killed by SIGABRT", tail=("the last line",))
        for each in (raised, other, ended):
            one.notes.add(FAULTS, each)
        assert client().notes.faults() == (evolve(raised, exit_code=-6, tail=("the last line",)), other)

    def test_no_fault_is_lost_when_many_are_put_at_once(self, client: Clients) -> None:
        put = [fault(f"n{number}") for number in range(16)]
        clients = [client() for _ in put]
        at_once(*(lambda c=c, f=f: c.notes.add(FAULTS, f) for c, f in zip(clients, put, strict=True)))
        assert sorted(each.node for each in client().notes.faults()) == sorted(each.node for each in put)

    def test_a_large_fault_survives(self, client: Clients) -> None:
        large = evolve(fault("a", message="ä\n" * 2_048), tail=("☃" * 4_096,) * 20)
        client().notes.add(FAULTS, large)
        assert client().notes.faults() == (large,)

    def test_of_more_faults_than_a_record_shows_the_first_and_the_last_are_kept(self, client: Clients) -> None:
        one = client()
        with short(FAULTS, 40):
            for number in range(83):
                one.notes.add(FAULTS, fault("a", number))
            assert [each.round for each in client().notes.faults()] == [*range(40), *range(43, 83)]

    # --- clients

    def test_a_clone_is_a_client_of_the_same_register(self, client: Clients) -> None:
        one = client()
        one.set(born(), None)
        clone = one.clone()
        assert clone.get().state == born()
        clone.close()

    def test_a_clone_outlives_the_client_that_it_was_made_of_and_the_other_way_round(self, client: Clients) -> None:
        one = client()
        one.set(born(), None)
        clone = one.clone()
        second = clone.clone()
        second.close()
        assert clone.get().state == born()
        one.close()
        assert clone.get().state == born()
        clone.close()

    def test_closing_twice_is_closing(self, client: Clients) -> None:
        one = client()
        one.get()
        one.close()
        one.close()
        fresh = client()
        fresh.close()
        fresh.close()

    # --- all together

    @pytest.mark.parametrize("helping_above", [1, 8], ids=["helping", "each by itself"])
    def test_eight_nodes_run_the_protocol_through_a_failure_to_success(
        self, client: Clients, helping_above: int
    ) -> None:
        names = [f"n{number}" for number in range(8)]
        settings = Settings(Limits(8, 8, 1), helping_above=helping_above, keep_alive_interval=STOPS_S)
        with ExitStack() as stack:
            peers = [stack.enter_context(Peer(client(), name, settings, f"life{name}")) for name in names]
            nodes, observer = [peer.node for peer in peers], client()
            for peer in peers:
                peer.heart.beat()
                peer.submit(handlers.join)
            first = [peer.hears(handlers.join) for peer in peers]
            assert isinstance(first[0], World) and all(world == first[0] for world in first)
            assert {member.node for member in first[0].members} == {peer.node for peer in peers}

            unlucky, *others = peers
            unlucky.record(fault("n0"))
            unlucky.submit(handlers.end, Why.FAILED)
            assert unlucky.told.get(timeout=ANSWER_S) == Recorded(fault("n0"))
            assert unlucky.hears(handlers.end) == Settled()
            for peer in others:
                over = peer.hears(handlers.watch)
                assert isinstance(over, Over) and over.ended and (over.round, over.ended.why) == (0, Why.FAILED)

            for peer in peers:
                peer.submit(handlers.join)
            second = [peer.hears(handlers.join) for peer in peers]
            assert isinstance(second[0], World) and all(world == second[0] for world in second)
            assert (second[0].round, second[0].failures, second[0].members) == (1, 1, first[0].members)

            for peer in peers:
                peer.submit(handlers.done)
            verdicts = [_verdict(peer) for peer in peers]
            assert {verdict.ending for verdict in verdicts} == {Ending.SUCCEEDED}
            assert all(verdict == verdicts[0] for verdict in verdicts)
            assert client().notes.faults() == (fault("n0"),)
            assert comes_true(lambda: None not in observer.heartbeats(nodes).counters.values())
        assert set(observer.heartbeats(nodes).counters.values()) == {None}


def _verdict(peer: Peer) -> Verdict:
    """The answer to `done` when the job ended with it, else what the barrier's watch tells."""
    answer = peer.hears(handlers.done)
    if isinstance(answer, Verdict):
        return answer
    assert answer == Settled()
    verdict = peer.hears(handlers.watch)
    assert isinstance(verdict, Verdict)
    return verdict


def _bumped(state: RendezvousState) -> RendezvousState:
    """The next version of the same: somebody left who was not seated."""
    return edited(state, "nobody", Leave())


class AgentConformance:
    """The claims on a store of agents, beside `Conformance`."""

    def test_the_last_note_of_a_node_is_read_and_a_node_without_one_is_left_out(self, client: AgentClients) -> None:
        writer, reader = client(), client()
        assert reader.notes.read(STANDBYS, []) == {}
        assert reader.notes.read(STANDBYS, [node("a")]) == {}
        writer.notes.put(STANDBYS, node("a"), StandbyNote(0, None))
        writer.notes.put(STANDBYS, node("b"), StandbyNote(1, 0.25))
        writer.notes.put(STANDBYS, node("a"), StandbyNote(2, 1.5))
        read = reader.notes.read(STANDBYS, [node("c"), node("b"), node("a")])
        assert read == {node("a"): StandbyNote(2, 1.5), node("b"): StandbyNote(1, 0.25)}

    def test_a_node_that_goes_takes_its_notes_along(self, client: AgentClients) -> None:
        writer, heart, note, ended = client(), client(), StandbyNote(1, 0.25), EarlyEnds(2, ((17, "12:00"),))
        for of in "ab":
            writer.notes.put(STANDBYS, node(of), note)
            writer.notes.put(ENDED, node(of), ended)
        heart.remove_heartbeat(node("a"))
        assert client().notes.read(STANDBYS, [node("a"), node("b")]) == {node("b"): note}
        assert client().notes.read(ENDED, [node("a"), node("b")]) == {node("b"): ended}

    def test_of_each_node_the_stacks_that_it_put_last_are_kept(self, client: AgentClients) -> None:
        one, two = client(), client()
        assert one.notes.read(STACKS, [node("a"), node("b")]) == {} == one.notes.read(STACKS, [])
        of_a, later = Stacks(node("a"), 0, ((0, "at x.py:1 in ☃"),)), Stacks(node("a"), 1, ((2, "asleep"),))
        of_b = Stacks(node("b"), 0)
        for each in (of_a, of_b):
            one.notes.put(STACKS, each.node, each)
        assert two.notes.read(STACKS, [node("a"), node("c"), node("b")]) == {of_a.node: of_a, of_b.node: of_b}
        two.notes.put(STACKS, later.node, later)
        assert one.notes.read(STACKS, [node("a")]) == {later.node: later}

    def test_the_times_of_nodes_that_have_gone_are_removed_and_no_others(self, client: AgentClients) -> None:
        writer, reader, nodes = client(), client(), [node(of) for of in "abc"]
        records = {each: NodeRecord(each, Spent({("training", "none"): 1})) for each in nodes}
        for each in nodes:
            writer.notes.put(TIMES, each, records[each])
        assert reader.notes.read(TIMES, nodes) == records
        reader.notes.drop(TIMES, nodes[1:])
        reader.notes.drop(TIMES, [])
        reader.notes.drop(TIMES, nodes[2:])
        assert writer.notes.read(TIMES, nodes) == {nodes[0]: records[nodes[0]]}

    def test_the_last_nodes_that_stay_out_are_on_record(self, client: AgentClients) -> None:
        one, two = client(), client()
        assert one.notes.all(UNFIT) == ()
        put = [Unfit(node(f"n{number}"), "host ☃", "12:00", f"reason {number}") for number in range(UNFIT_MAX + 2)]
        for each in put:
            one.notes.add(UNFIT, each)
        assert list(two.notes.all(UNFIT)) == put[2:]

    def test_the_stacks_of_many_nodes_are_read_at_once(self, client: AgentClients) -> None:
        names = [f"n{number}" for number in range(40)]
        put = [Stacks(node(name), 0, ((number, "x" * 256),)) for number, name in enumerate(names)]
        for each in put:
            client().notes.put(STACKS, each.node, each)
        assert client().notes.read(STACKS, map(node, names)) == {each.node: each for each in put}

    def test_a_query_is_heard_at_the_next_heartbeat_and_no_more_once_it_is_withdrawn(
        self, client: AgentClients
    ) -> None:
        asker, agent = client(), client()
        asker.set(born(), None)
        first, second = Query("0" * 16, 0), Query("f" * 16, 2, 17)
        for counter, query in enumerate((None, first, second, None), 1):
            if query:
                asker.notes.put_query(query)
            else:
                asker.notes.withdraw_query([node("a")])
            agent.heartbeat(node("a"), counter)
            assert agent.notes.query == query
            assert client().notes.replies([node("a")]) == Replies(query, {})

    def test_the_replies_to_a_query_go_with_it(self, client: AgentClients) -> None:
        asker, query = client(), Query("1" * 16, 3, 0)
        asker.set(born(), None)
        asker.notes.put_query(query)
        names = [f"n{number}" for number in range(40)]
        put = {node(name): Reply(query.id, Stacks(node(name), 3, ((7, "at x.py:1 in ☃"),)), "a\nb") for name in names}
        for each in put.values():
            client().notes.put_reply(each)
        assert asker.notes.replies([*put, node("z")]) == Replies(query, put)
        other = Query("2" * 16, 3)
        assert asker.notes.replies(put).to(query) == put and asker.notes.replies(put).to(other) == {}
        asker.notes.withdraw_query(put)
        client().notes.put_reply(put[node("n0")])
        assert client().notes.replies(put) == Replies(None, {})
