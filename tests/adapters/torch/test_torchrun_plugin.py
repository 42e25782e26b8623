"""What torch's agent is promised by a rendezvous, kept by ours: two agents as threads, over one memory store."""

from __future__ import annotations

import errno
import gc
import logging
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from attrs import evolve
from netlab import network
from ports import is_taken
from processes import comes_true
from torch.distributed.elastic import events
from torch.distributed.elastic.events import handlers as torch_handlers
from torch.distributed.elastic.events.api import NodeState, RdzvEvent
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousStateError,
    RendezvousTimeoutError,
)

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous import reserved_ports
from elastic.adapters.rendezvous.reserved_ports import Reservation
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.port import Backend, OutOfReach, Shown
from elastic.adapters.torch.round_store import Unmet, meet
from elastic.adapters.torch.torchrun_plugin import NOT_SHARED, ElasticRendezvous
from elastic.core.rendezvous import Limits, RendezvousState, Settings, Status
from elastic.core.world import Ending, Why

CLOCK = SystemClock()
PAIR = Settings(Limits(2, 2), keep_alive_interval=0.2, keep_alive_max_attempt=8, upscale_after=0.0, close_timeout=1.0)
ELASTIC = evolve(PAIR, limits=Limits(1, 2), last_call_timeout=0.0)
ANSWER_S = 60.0


class SharedConnection:
    """A memory store in which all agents of a test meet."""

    place = "in memory"
    serves = False

    def __init__(self, store: MemoryStore) -> None:
        self.backend = MemoryBackend(store, CLOCK)

    def beside(self, name: str) -> Backend:
        return MemoryBackend(MemoryStore(), CLOCK)

    def close(self, timeout_s: float) -> None:
        self.backend.close()


class Agents:
    """As torch's agents call: each from a thread of its own."""

    def __init__(self, stack: ExitStack) -> None:
        self.store = MemoryStore()
        self._stack = stack
        self._threads = stack.enter_context(ThreadPoolExecutor(8))

    def new(self, settings: Settings = PAIR) -> ElasticRendezvous:
        made = ElasticRendezvous(SharedConnection(self.store), "job", "localhost", settings, CLOCK)
        self._stack.callback(made.shutdown)
        return made

    def join(self, handler: ElasticRendezvous) -> Future[RendezvousInfo]:
        return self._threads.submit(handler.next_rendezvous)

    def pair(self) -> tuple[ElasticRendezvous, ElasticRendezvous]:
        """In one world, the first with rank 0."""
        first, second = self.new(), self.new()
        comes = self.join(first)
        self.reaches(lambda state: len(state.seats) == 1)
        ranks = [each.result(ANSWER_S).rank for each in (comes, self.join(second))]
        assert ranks == [0, 1]
        return first, second

    def grown(self) -> tuple[ElasticRendezvous, ElasticRendezvous]:
        """One that ran alone, and a newcomer, in one world."""
        first, second = self.new(ELASTIC), self.new(ELASTIC)
        assert self.again(first)[0].world_size == 1
        comes = self.join(second)
        assert waits(first)
        assert [each.result(ANSWER_S).world_size for each in (self.join(first), comes)] == [2, 2]
        return first, second

    def again(self, *handlers: ElasticRendezvous) -> list[RendezvousInfo]:
        return [each.result(ANSWER_S) for each in [self.join(handler) for handler in handlers]]

    def reaches(self, claim: Callable[[RendezvousState], object]) -> None:
        assert comes_true(lambda: self.store.state is not None and bool(claim(self.store.state))), self.store.state

    @property
    def state(self) -> RendezvousState:
        assert self.store.state
        return self.store.state


@pytest.fixture
def agents() -> Iterator[Agents]:
    with ExitStack() as stack:
        yield Agents(stack)


def waits(handler: ElasticRendezvous) -> bool:
    """Whether its agent is told to come back, in good time."""
    return comes_true(lambda: handler.num_nodes_waiting() > 0)


class Kept(logging.Handler):
    """What torch's logger of rendezvous events was given."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[RdzvEvent] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.events.append(RdzvEvent.deserialize(record.getMessage()))


@pytest.fixture
def told() -> Iterator[list[RdzvEvent]]:
    """The rendezvous events that torch hands to whoever has put a handler in the place of its own."""
    logger = logging.getLogger("torchelastic-events-dynamic_rendezvous")
    before, handler = torch_handlers.get_logging_handler("dynamic_rendezvous"), Kept()
    torch_handlers._log_handlers["dynamic_rendezvous"] = handler
    logger.handlers, level = [handler], logger.level
    logger.setLevel(logging.INFO)
    events._events_loggers.pop("dynamic_rendezvous", None)
    try:
        yield handler.events
    finally:
        torch_handlers._log_handlers["dynamic_rendezvous"] = before
        logger.handlers = [before]
        logger.setLevel(level)
        events._events_loggers.pop("dynamic_rendezvous", None)


def test_who_listens_to_torchs_rendezvous_events_is_told_of_ours(agents: Agents, told: list[RdzvEvent]) -> None:
    handler = agents.new(ELASTIC)
    agents.again(handler)
    handler.set_closed()
    with pytest.raises(RendezvousClosedError):
        agents.new(ELASTIC).next_rendezvous()
    assert [(event.node_state, event.rank, event.message.partition("'")[0]) for event in told] == [
        (NodeState.RUNNING, None, "The node "),
        (NodeState.RUNNING, 0, "The node "),
        (NodeState.SUCCEEDED, None, "The node "),
        (NodeState.RUNNING, None, "The node "),
        (NodeState.FAILED, None, "RendezvousClosedError: run job was closed by torch"),
    ]
    assert {event.run_id for event in told} == {"job"}
    assert "has joined round 0 of the rendezvous 'job' as rank 0 in a world of size 1" in told[1].message
    assert "RendezvousClosedError" in told[4].error_trace


def test_it_is_one_of_torchs_handlers_and_names_itself(agents: Agents) -> None:
    handler = agents.new()
    assert isinstance(handler, RendezvousHandler)
    assert (handler.get_backend(), handler.get_run_id()) == ("elastic", "job")


def test_a_world_has_dense_ranks_one_store_and_one_meeting_place(agents: Agents) -> None:
    infos = agents.again(agents.new(), agents.new())
    assert sorted(info.rank for info in infos) == [0, 1]
    assert {info.world_size for info in infos} == {2}
    assert infos[0].bootstrap_store_info == infos[1].bootstrap_store_info
    infos[0].store.set("said", "word")
    assert infos[1].store.get("said") == b"word"
    assert infos[1].store.multi_get(["said"]) == [b"word"]


def test_the_workers_may_use_the_agents_store_at_the_address_that_they_are_given(agents: Agents) -> None:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    first, second = agents.pair()
    info = agents.again(first, second)[0].bootstrap_store_info
    assert info and first.use_agent_store
    worker = TCPStore(info.master_addr, info.master_port, is_master=False)
    worker.set("of", "a worker")
    assert worker.get("of") == b"a worker"


def test_with_sharing_switched_off_as_in_torch_the_workers_get_a_port_that_is_free(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NOT_SHARED, "1")
    infos = agents.again(agents.new(), agents.new())
    places = [info.bootstrap_store_info for info in infos]
    assert places[0] == places[1] and places[0]
    port = places[0].master_port
    assert comes_true(lambda: not is_taken(port))  # another test may have it for a moment


def test_each_round_has_a_store_in_which_nothing_is_written_yet(agents: Agents) -> None:
    first, second = agents.pair()
    before = agents.again(first, second)
    before[0].store.set("stale", "")
    after = agents.again(first, second)
    places = [info.bootstrap_store_info for info in (before[0], after[0])]
    assert places[0] and places[1] and places[0].master_port != places[1].master_port
    assert not after[1].store.check(["stale"])
    assert [info.rank for info in after] == [0, 1]


def test_an_agent_that_comes_back_ends_the_round_for_the_others_and_no_restart_is_charged(agents: Agents) -> None:
    first, second = agents.pair()
    assert (first.num_nodes_waiting(), second.num_nodes_waiting()) == (0, 0)
    comes = agents.join(second)
    assert waits(first)
    assert [each.result(ANSWER_S).rank for each in (agents.join(first), comes)] == [0, 1]
    assert (first.num_nodes_waiting(), second.num_nodes_waiting()) == (0, 0)
    assert agents.state.ended and agents.state.ended.why is Why.FENCED
    assert (agents.state.round, agents.state.failures) == (1, 0)


def test_a_newcomer_with_room_is_taken_up_and_one_that_leaves_is_done_without(agents: Agents) -> None:
    first, second = agents.grown()
    second._leave()  # as at the end of a process whose torch agent was ended by a signal
    assert waits(first)
    assert agents.again(first)[0].world_size == 1


def test_an_agent_that_falls_silent_is_lost_and_the_others_are_told(agents: Agents) -> None:
    first, second = agents.grown()
    second._heart.stop()
    second._loop.stop()
    assert waits(first)
    assert agents.again(first)[0].world_size == 1
    second._ended = True


def test_heartbeats_go_on_while_nobody_calls(agents: Agents) -> None:
    agents.pair()
    before = dict(agents.store.beats)
    assert comes_true(lambda: all(agents.store.beats[node][0] > beat[0] + 10 for node, beat in before.items()))
    assert not agents.state.closed and agents.state.complete


def test_the_end_of_an_agent_closes_the_job_as_cancelled_by_it_and_never_as_a_success(agents: Agents) -> None:
    first, second = agents.pair()
    assert not first.is_closed()
    ends = ThreadPoolExecutor(1).submit(first.shutdown)
    assert waits(second)
    with pytest.raises(
        RendezvousClosedError, match=r"run job was closed by torch's agent localhost/torchrun-.* in round 0"
    ):
        second.next_rendezvous()
    assert second.shutdown() and ends.result(ANSWER_S)
    verdict = agents.state.closed
    assert verdict and (verdict.ending, verdict.why) == (Ending.CANCELLED, Why.ASKED)
    assert verdict.by.slot.startswith("localhost/torchrun-")
    assert first.shutdown()


def test_set_closed_closes_and_can_be_said_twice(agents: Agents) -> None:
    handler = agents.new()
    handler.set_closed()
    assert handler.is_closed()
    handler.set_closed()
    assert agents.state.closed


def test_an_agent_without_a_world_leaves_and_closes_nothing(agents: Agents) -> None:
    """torch's c10d would close the job for all."""
    late = agents.new(evolve(PAIR, join_timeout=0.5))
    with pytest.raises(RendezvousTimeoutError, match="run job: "):
        late.next_rendezvous()
    assert late.shutdown()
    assert not agents.state.seats and not agents.state.closed


def test_a_spare_of_a_job_that_ends_is_told_that_it_is_not_needed(agents: Agents) -> None:
    first, second = agents.pair()
    waits_in_vain = agents.join(agents.new())
    agents.reaches(lambda state: Status.WAITING in [seat.status for seat in state.seats.values()])
    with ThreadPoolExecutor(2) as both:
        assert all(both.map(ElasticRendezvous.shutdown, (first, second)))
    with pytest.raises(RendezvousGracefulExitError, match="was closed"):
        waits_in_vain.result(ANSWER_S)


def test_agents_that_disagree_on_their_number_are_told_so(agents: Agents) -> None:
    agents.join(first := agents.new())
    agents.reaches(lambda state: state.seats)
    with pytest.raises(RendezvousError, match=r"--nnodes=2:2 .* this agent was given --nnodes=1:2"):
        agents.new(ELASTIC).next_rendezvous()
    agents.again(agents.new())
    assert not first.is_closed()


def test_a_host_without_another_port_joins_with_the_last_one(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    def has_none(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    first = agents.new(ELASTIC)
    agents.again(first)
    monkeypatch.setattr(reserved_ports, "_bind", has_none)
    gc.disable()  # no round's store may wait for it: it would keep the port
    try:
        assert [agents.again(first)[0].world_size for _ in range(2)] == [1, 1]
    finally:
        gc.enable()


class _Slipping(MemoryBackend):
    """A store whose author made a slip: this call raises what is no StoreError."""

    def __init__(self, store: MemoryStore, call: str) -> None:
        super().__init__(store, CLOCK)
        self._call = call
        setattr(self, call, self._slip)

    def clone(self) -> _Slipping:
        return _Slipping(self._store, self._call)

    def _slip(self, *given: object) -> None:
        raise ZeroDivisionError("a slip")


def _joins_on(handler: ElasticRendezvous) -> None:
    while True:
        handler.next_rendezvous()


@pytest.mark.parametrize("call", ["heartbeat", "wait_for_change"])
def test_an_error_that_nobody_foresaw_in_a_thread_of_it_is_raised_at_each_call(agents: Agents, call: str) -> None:
    connection = SharedConnection(agents.store)
    connection.backend = _Slipping(agents.store, call)
    first = ElasticRendezvous(connection, "job", "localhost", ELASTIC, CLOCK)
    try:
        for _ in range(2):
            with pytest.raises(RendezvousStateError, match="a thread failed: ZeroDivisionError"):
                _joins_on(first)
        assert not first.shutdown()
        assert first.shutdown()
    finally:
        first.shutdown()


class _Away(MemoryBackend):
    """A store that does not answer."""

    def get(self) -> Shown:
        raise OutOfReach("nobody listens")

    def clone(self) -> _Away:
        return self


def test_a_store_that_does_not_answer_is_a_connection_error(agents: Agents) -> None:
    connection = SharedConnection(agents.store)
    connection.backend = _Away(agents.store, CLOCK)
    handler = ElasticRendezvous(
        connection, "job", "localhost", evolve(PAIR, join_timeout=0.5, close_timeout=0.2, leave_timeout=0.2), CLOCK
    )
    try:
        with pytest.raises(RendezvousConnectionError, match="the store in memory did not answer"):
            handler.next_rendezvous()
        with pytest.raises(RendezvousConnectionError, match="nobody listens"):
            handler.is_closed()
        with pytest.raises(RendezvousConnectionError):
            handler.set_closed()
    finally:
        handler.shutdown()


def test_a_state_that_no_agent_may_have_written_is_a_state_error(agents: Agents) -> None:
    first, second = agents.pair()
    with agents.store.changed:
        agents.store.state = evolve(agents.state, version=agents.state.version + 1, seats={})
        agents.store.changed.notify_all()
    with pytest.raises(RendezvousStateError, match="outside 2 to 2"):
        first.next_rendezvous()
    assert second.num_nodes_waiting() == 0  # running workers are not stopped for that


def test_a_world_that_is_over_before_all_have_met_is_not_given() -> None:
    """Nobody serves its store: the first has died as soon as it was seated."""
    looks = iter([True, True, False])
    with Reservation("localhost") as held:
        assert meet(held.endpoint, 1, 2, lambda: next(looks), CLOCK.now, CLOCK.now() + ANSWER_S) is None


def test_a_member_that_never_comes_is_no_reason_to_wait_for_ever() -> None:
    with Reservation("localhost") as held, pytest.raises(Unmet, match="was not reached by all members; --local-addr"):
        meet(held.endpoint, 0, 2, lambda: True, CLOCK.now, CLOCK.now())
    with Reservation("localhost") as held, pytest.raises(Unmet, match="is out of reach from here; --local-addr"):
        meet(held.endpoint, 1, 2, lambda: True, CLOCK.now, CLOCK.now())


@pytest.mark.parametrize("address", ["192.0.2.1", "no.such.host.invalid", 64 * "a"])
def test_who_serves_at_an_address_that_leads_nowhere_hears_that_the_world_is_over(address: str) -> None:
    """torch alone would try for all of its time-out, and again for each address of the name."""
    with Reservation("localhost") as held:
        where, looks = evolve(held.endpoint, address=address), iter([True, True, False])
        assert meet(where, 0, 2, lambda: next(looks), CLOCK.now, math.inf) is None
        with pytest.raises(Unmet, match="is out of reach from here; --local-addr"):
            meet(where, 0, 2, lambda: True, CLOCK.now, CLOCK.now())


def test_a_member_comes_again_when_the_store_of_its_round_is_served_anew() -> None:
    """The first to serve it got no turn for a second while it began, so torch took the store away."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    with Reservation("localhost") as held, ThreadPoolExecutor(1) as threads:
        stands = threading.Event()
        stands.set()
        where = held.endpoint.address, held.endpoint.port
        served = [TCPStore(*where, is_master=True, wait_for_workers=False)]
        guest = threads.submit(meet, held.endpoint, 1, 2, stands.is_set, CLOCK.now, math.inf)
        try:
            assert comes_true(lambda: served[0].check(["elastic/come/1"]))
            served.clear()
            host = meet(held.endpoint, 0, 2, lambda: True, CLOCK.now, CLOCK.now() + ANSWER_S)
            assert host and guest.result(ANSWER_S)
        finally:
            stands.clear()


SLOW_NAMES = """
import socket, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.reserved_ports import Reservation
from elastic.adapters.torch.round_store import meet

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
asked = []

def serve():
    while True:
        question, where = server.recvfrom(512)
        asked.append(question)
        time.sleep(1.5)
        server.sendto(question[:2] + b"\\x81\\x83" + question[4:], where)

threading.Thread(target=serve, daemon=True).start()
now = SystemClock().now
until = now() + float(sys.argv[1])
with Reservation("127.0.0.1") as held, ThreadPoolExecutor(2) as threads:
    print([met.size for met in threads.map(lambda rank: meet(held.endpoint, rank, 2, lambda: True, now, until), (0, 1))])
assert asked
"""


def test_members_meet_though_a_name_server_takes_longer_than_a_slice_to_answer() -> None:
    with network() as lab:
        host = lab.host("a")
        lab.asks(host, "nameserver 127.0.0.1", "options timeout:30")
        environment = {name: value for name, value in os.environ.items() if name != "RES_OPTIONS"}
        command = [*host.under, sys.executable, "-c", SLOW_NAMES, str(ANSWER_S)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout) == (0, "[2, 2]\n"), ended.stderr


def test_who_serves_the_store_of_a_round_waits_for_the_others_to_go() -> None:
    with Reservation("localhost") as held, ThreadPoolExecutor(2) as threads:
        both = [threads.submit(meet, held.endpoint, rank, 2, lambda: True, CLOCK.now, math.inf) for rank in (0, 1)]
        host, guest = (each.result(ANSWER_S) for each in both)
        assert host and guest
        parts = threads.submit(host.part, ANSWER_S)
        with pytest.raises(TimeoutError):
            parts.result(0.3)
        guest.part(ANSWER_S)
        parts.result(ANSWER_S)
