"""Our rendezvous under torch's agent: what `torchrun --rdzv-backend=elastic` asks, answered by the loop under our protocol.

torch's agent decides what becomes of its workers and counts its own restarts. It asks for the next world (a join, which ends
the round that still stands), whether the world is over, and it closes the job: as cancelled by it, since it does not say
whether its workers have succeeded. Who was never in a world leaves instead, so that the others go on.

Threads only post; torch's thread, which calls, takes what was posted.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import assert_never

from torch.distributed.elastic.events import construct_and_record_rdzv_event
from torch.distributed.elastic.events.api import NodeState
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

from ...core.node import farewell
from ...core.rendezvous import Held, Outcome, Raise, RendezvousState, Settings, Who, handlers
from ...core.rendezvous.agenda import Request
from ...core.rendezvous.context import Handler
from ...core.world import Ending, Life, Node, Profile, Verdict, Why, World
from ..addresses import ANY
from ..clock import Clock
from ..rendezvous.heart import Heart
from ..rendezvous.loop import RendezvousLoop
from ..rendezvous.reserved_ports import Reservation
from ..report.news import LoopNotice, Recorded, Restored, Seen, StoodStill, StoreBack, StoreSilent, Told
from ..store.connection import StoreConnection
from ..store.port import StoreError
from ..terminal import printable
from .rendezvous_events import RendezvousEvents
from .round_store import RoundStore, Unmet, meet

_NAME = "elastic"
"""What --rdzv-backend says; torch asks for it back."""
NOT_SHARED = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""torch's switch: the workers do not use the agents' store, worker rank 0 serves one."""

log = logging.getLogger(__name__)


class ElasticRendezvous(RendezvousHandler):
    """One torch agent's part in one job."""

    def __init__(
        self,
        connection: StoreConnection,
        run_id: str,
        address: str,
        settings: Settings,
        clock: Clock,
        ports: Sequence[int] = ANY,
    ) -> None:
        """`address` is how the other nodes reach this host, which listens at these ports. Raises OSError if none is left."""
        self._connection = connection
        self._run_id = run_id
        self._address = address
        self._settings = settings
        self._clock = clock
        self._node = Node(f"{address}/torchrun-{os.urandom(4).hex()}", int(clock.wall() * 1000))
        self._events = RendezvousEvents(run_id, str(self._node), self._record)
        self._reserved = Reservation(address, ports)
        self._inbox: SimpleQueue[LoopNotice | BaseException] = SimpleQueue()
        held = Held(Who(self._node, self._profile(), settings, Life(os.urandom(8).hex())))
        self._loop = RendezvousLoop(connection.backend, held, clock, self._inbox.put, self._inbox.put)
        interval_s, beats = settings.keep_alive_interval, connection.backend.clone()
        self._heart = Heart(beats, self._node, interval_s, clock, lambda sent_at, life: None, self._inbox.put)
        self._state: RendezvousState | None = None
        self._over = False
        self._round: RoundStore | None = None
        """The store of the world that torch's agent runs; None while it runs none."""
        self._ended = False
        self._loop.start()
        self._heart.start()
        atexit.register(self._leave)  # torch asks for nothing when its agent is ended by a signal

    # --- what torch's agent calls

    def get_backend(self) -> str:
        return _NAME

    def get_run_id(self) -> str:
        return self._run_id

    @property
    def use_agent_store(self) -> bool:
        return os.getenv(NOT_SHARED, "0") != "1"

    def next_rendezvous(self) -> RendezvousInfo:
        """Block until this node is in a world in which its workers did not run yet, and all its members have met."""
        self._round = None
        self._events.joins()
        try:
            found, world = self._next()
        except Exception as error:
            self._events.failed(f"{type(error).__name__}: {error}")
            raise
        self._round = found
        self._events.joined(world.round, found.rank, found.size)
        return RendezvousInfo(found.agents, found.rank, found.size, self._bootstrap(found, world))

    def num_nodes_waiting(self) -> int:
        """Above 0 when the world is over, for whatever reason: a newcomer, a failure, a loss, or the end of the job."""
        self._hear()
        return max(1, len(self._state.wait_list) if self._state else 0) if self._over else 0

    def is_closed(self) -> bool:
        try:
            state = self._connection.backend.get().state
        except StoreError as error:
            raise RendezvousConnectionError(printable(str(error))) from error
        return bool(state and state.closed)

    def set_closed(self) -> None:
        answer = self._asked(Request(handlers.close, Why.ASKED, Ending.CANCELLED))
        if isinstance(answer, Raise):
            raise self._error(answer)
        self._events.closed()
        if isinstance(answer, Verdict) and (last := farewell(answer)):
            self._asked(last)

    def shutdown(self) -> bool:
        """Close the job as cancelled if this agent ran a world of it, else leave it to the others. False if the store did
        not confirm it. Idempotent."""
        if self._ended:
            return True
        if self._round is None:
            return self._leave()
        try:
            self.set_closed()
        except RendezvousError as error:
            log.warning("the rendezvous of run %s could not be closed: %s", self._run_id, error)
            return False
        finally:
            self._round.part(self._settings.close_timeout)
            self._end()
        return True

    def _record(self, name: str, message: str, state: str, rank: int | None) -> None:
        """Send an event. For a failure torch adds the traceback of the error that is being handled."""
        run_id, state_ = self._run_id, NodeState[state]
        place = self._connection.place
        construct_and_record_rdzv_event(run_id, message, state_, name, self._address, master_endpoint=place, rank=rank)

    # --- a world

    def _next(self) -> tuple[RoundStore, World]:
        while True:
            world = self._join()
            if found := self._met(world):
                return found, world

    def _join(self) -> World:
        self._reserved.renew()
        answer = self._asked(Request(handlers.join, profile=self._profile()))
        match answer:
            case World():
                self._over = False
                return answer
            case Raise():
                raise self._error(answer)
            case _:
                raise RendezvousStateError(f"a join was answered by {answer}")

    def _met(self, world: World) -> RoundStore | None:
        """None if the world is over before all its members have met."""
        endpoint = world.profiles[0].endpoint
        rank = world.nodes.index(self._node)
        until = self._clock.now() + self._settings.join_timeout
        try:
            return meet(endpoint, rank, len(world.nodes), self._stands, self._clock.now, until)
        except Unmet as error:
            raise RendezvousConnectionError(printable(str(error))) from error

    def _bootstrap(self, found: RoundStore, world: World) -> RendezvousStoreInfo:
        """Return where the workers meet."""
        if not self.use_agent_store:
            return RendezvousStoreInfo.build(found.rank, found.agents, self._address)
        endpoint = world.profiles[0].endpoint
        return RendezvousStoreInfo(endpoint.address, endpoint.port)

    def _stands(self) -> bool:
        self._hear()
        return not self._over

    def _profile(self) -> Profile:
        """torch's agents exchange by themselves how many workers they have."""
        return Profile(self._reserved.endpoint, host=os.uname().nodename, serves_store=self._connection.serves or None)

    # --- what was posted

    def _asked(self, request: Request) -> Outcome | Raise:
        """Have it done, and wait for the answer; the core gives it a deadline where it needs one."""
        self._loop.submit(request)
        while (answer := self._note(self._inbox.get(), request.handler)) is None:
            pass
        return answer

    def _hear(self) -> None:
        while True:
            try:
                self._note(self._inbox.get_nowait(), None)
            except Empty:
                return

    def _note(self, notice: LoopNotice | BaseException, asked: Handler | None) -> Outcome | Raise | None:
        """Return what it says of the operation that was asked for. Raises RendezvousStateError, now and at each later call,
        for an error that has ended a thread of ours: no answer would come."""
        match notice:
            case Told(handlers.watch):
                self._over = True
            case Told(handler, answer):
                return answer if handler is asked else None
            case Seen(state):
                self._state = state
            case StoreSilent(text):
                log.warning("the store of run %s is away, running workers go on: %s", self._run_id, printable(text))
            case StoreBack():
                log.warning("the store of run %s is back", self._run_id)
            case Restored(by_me=by_me):
                log.warning("the store of run %s had lost its state: %s", self._run_id, _restored(by_me))
            case Recorded() | StoodStill():
                pass
            case BaseException() as error:
                self._inbox.put(error)
                raise RendezvousStateError(printable(f"run {self._run_id}: a thread failed: {error!r}")) from error
            case other:
                assert_never(other)
        return None

    def _error(self, answer: Raise) -> RendezvousError:
        """Return the error in torch's words."""
        text = printable(f"run {self._run_id}: {answer.text}")
        match answer.failure.why:
            case Why.CLOSED:
                return self._closed(answer.failure.verdict)
            case Why.TIMEOUT:
                return RendezvousTimeoutError(text)
            case Why.UNCONFIRMED:
                return RendezvousConnectionError(
                    f"run {self._run_id}: the store {self._connection.place} did not answer"
                )
            case Why.ILLEGAL:
                return RendezvousStateError(text)
            case _:
                return RendezvousError(text)

    def _closed(self, verdict: Verdict | None) -> RendezvousError:
        whose = f"torch's agent {verdict.by.slot} in round {verdict.round}" if verdict else "another agent"
        text = f"run {self._run_id} was closed by {whose}; a new job needs another --rdzv-id"
        spare = self._state is not None and self._node in self._state.redundancy_list
        return RendezvousGracefulExitError(text) if spare else RendezvousClosedError(text)

    # --- the end

    def _leave(self) -> bool:
        """Leave without ending the job for the others. Return True if this node is out."""
        if self._ended:
            return True
        try:
            return not isinstance(self._asked(Request(handlers.leave)), Raise)
        except RendezvousStateError as error:
            log.warning("run %s could not be left: %s", self._run_id, error)
            return False
        finally:
            self._end()

    def _end(self) -> None:
        self._ended = True
        atexit.unregister(self._leave)
        self._loop.stop()
        self._heart.stop()
        self._connection.close(self._settings.ttl)
        self._reserved.release()


def _restored(by_me: bool) -> str:
    return "this node gave it back" if by_me else "another node's is taken"
