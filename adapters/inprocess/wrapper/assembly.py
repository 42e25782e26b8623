"""One wrapped call, assembled: the register's client, the driver, the monitor process. It is begun, carried through, let
go."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ....core import inprocess
from ....core.caller import HELPING_ABOVE, HELPING_PATIENCE_S, Terms, signature
from ....core.inprocess.monitoring import Bye, rules_of
from ....core.rendezvous import Held, Limits, Settings, Who
from ....core.rendezvous.state import NODES_MAX
from ....core.values import field, frozen
from ....core.world import COUNT_MAX, Endpoint, Life, Node, Profile, World
from ...clean_up import run_all
from ...clock import SystemClock
from ...rendezvous.loop import LoopNotice, RendezvousLoop
from ...store.port import Backend
from ...store.tcpstore.serving import address_towards
from ...store.tcpstore.wire import Address
from ...workers.messages.entered import say_entered
from ...workers.start.environment import SCOPE, TRACE
from ..beside.supervisor import Charge, Supervisor
from ..gate.alarm import Alarm
from ..gate.bytecode_progress import Progress
from ..gate.gate import Gate
from ..rank.callbacks import Callbacks, State
from ..rank.driver import Driver, end_process, log
from ..rank.latecomers import Latecomers
from ..rank.main_thread import serve
from ..rank.task import Labels, Task
from ..rank.tracing import traced, untraced
from ..shared_page import BYE, Page
from ..thread_events import Finished, Message, ToMain
from .parameters import labels, party, rank_and_world_size, slot
from .stores import Store

FAREWELL_S = 10.0
"""How much longer than `leave_timeout` the monitor may take to end."""
NEVER_S = 1e9
"""How long a newcomer waits before it ends a running iteration, where it should never."""
FIRST_CALL = 0.75
"""The part of `barrier_timeout` for which the first iteration waits for ranks that do not come."""
OVERDUE = 0.75
"""The part of `barrier_timeout` that a rank may take to come back from an iteration that is over."""


def _says_nothing(state: State, world: World | None) -> tuple[tuple[str, str], ...]:
    return ()


@frozen
class Plan:
    """The parameters of a wrapper."""

    settings: inprocess.Settings
    callbacks: Callbacks
    terms: Terms
    store: Callable[[], Store]
    monitor_log: str | None
    monitor_pid: str | None
    upscale: bool | None
    """True: a late rank ends the iteration at once. None: only if the launcher starts lost ranks again."""
    trace: str | None
    """The directory that gets traces; None: the one that the launcher names, if any."""
    labels: Labels = _says_nothing
    """Returns what a rank says of itself when it joins, for its rank policy to read."""


def _alarm() -> Alarm | None:
    try:
        return Alarm()
    except OSError:
        return None  # the kernel gives none; the alarm only helps if the monitor dies during a hang


@frozen(eq=False)
class Parts:
    """The values that the main thread and the driver share in one call. The main thread makes them."""

    page: Page = field(factory=Page.new)
    inbox: SimpleQueue[Message] = field(factory=SimpleQueue)
    orders: SimpleQueue[ToMain] = field(factory=SimpleQueue)
    alarm: Alarm | None = field(factory=_alarm)
    gate: Gate = field(init=False)
    progress: Progress = field(init=False)

    @gate.default
    def _gate(self) -> Gate:
        return Gate(self.page, self.inbox.put, self.alarm)

    @progress.default
    def _progress(self) -> Progress:
        return Progress(self.page)

    def close(self) -> None:
        if self.alarm:
            self.alarm.close()
        self.page.close()


_calls = 0
"""How many calls of wrapped functions this process has made: each has a register of its own."""
_token = 0
"""The token of the last call's last span."""
_last_state: State | None = None
"""The state at the end of the last call: RANK and WORLD_SIZE have other values since."""
_size_before = 0
"""The world size at the end of the call before it; before the first call, that of the launcher."""


def _forked() -> None:
    """Forget the last call's place: this process has RANK and WORLD_SIZE of its own. It goes on with the next register."""
    global _last_state
    _last_state = None


os.register_at_fork(after_in_child=_forked)


class Assembly:
    """The assembly of one call."""

    def __init__(self, plan: Plan, parts: Parts, function: Callable[[], object]) -> None:
        """Raises NoStore if no store is named."""
        global _calls
        self._plan, self._parts = plan, parts
        self._clock = SystemClock()
        rank, world_size = _place()
        self._me = Node(slot(rank), int(self._clock.wall() * 1000))
        self._profile = _profile()
        store, space, _calls = plan.store(), str(_calls), _calls + 1
        self._connection = store.connect(space, self._clock)
        self.backend: Backend = self._connection.backend
        self._held = Held(
            Who(
                self._me,
                self._profile,
                _rendezvous(plan, world_size),
                Life(os.urandom(8).hex()),
                policy=functools.partial(signature, plan.terms),
            ),
        )
        probe_s = plan.settings.progress_watchdog_interval
        meets_at = self._connection.phrase
        given = (plan.callbacks, plan.terms, self._profile, (rank, world_size), probe_s, meets_at, self._clock)
        self.task = Task(function, *given, plan.labels)
        charge = _charge(plan, self._me, self._connection.route)
        pid_file = _own(plan.monitor_pid, self._me)
        self._supervisor = Supervisor(parts.page, charge, parts.alarm, pid_file=pid_file, failed=end_process)

    def carry_through(self) -> Finished:
        """Carry the call through on the main thread. Return how it ended. Only a rank that serves the store waits for the
        clean-up as well."""
        global _last_state, _size_before, _token
        call = inprocess.Call(self._plan.settings, token=_token)
        self._trace = trace = traced(self._plan.trace or os.environ.get(TRACE), self._held, call, self._clock)
        driver = Driver(
            self.task,
            call,
            self._parts.gate,
            self._parts.page,
            self._parts.progress,
            self._parts.inbox,
            self._parts.orders,
            lambda post: RendezvousLoop(
                self.backend, self._held, self._clock, self._latecomers(post).told, end_process, trace.took
            ),
            self.backend.notes.faults,
            self._me,
            self._clock,
            self._connection.starts,
            self._let_go,
            trace,
        )
        if impediment := self._parts.gate.impediment():
            log.warning("rank %s can be called back at safe points alone: %s", self._me.slot, impediment)
        try:
            self._supervisor.start()
            say_entered()  # now its monitor speaks for it, so the others go on without it
            driver.start()
        except OSError:  # no monitor or no thread can be had: nothing has begun
            self._parts.page.words[BYE] = Bye.UNSETTLED
            self._let_go()
            raise
        finished = serve(self._parts.gate, self._parts.orders)
        if self._parts.page.is_private:
            return finished
        _size_before = _last_state.world_size if _last_state else self.task.state.initial_world_size
        _token, _last_state = driver.token, self.task.state
        if self._connection.serves:
            driver.join()
        return finished

    def _latecomers(self, post: Callable[[LoopNotice], None]) -> Latecomers:
        return Latecomers(post, self._me, self._held.who.settings, self.task.state.initial_world_size)

    def _let_go(self) -> None:
        """Clean up. The register knows how the call ended, or the monitor tells it."""
        run_all(
            lambda: self._supervisor.close(self._plan.settings.leave_timeout + FAREWELL_S),
            lambda: self._connection.close(FAREWELL_S),
            self._parts.close,
            lambda: untraced(self._trace),
        )


def _place() -> tuple[int, int]:
    """Return the launcher's rank, which names this rank, and its world size."""
    if _last_state:
        return _last_state.initial_rank, _last_state.initial_world_size
    return rank_and_world_size()


def _first_target(world_size: int, upscale: bool) -> int:
    """Return how many ranks the first iteration waits for. One that two calls were without may be gone for good. One that
    can come later is not waited for."""
    if _last_state is None:
        return world_size
    return _last_state.world_size if upscale else max(_last_state.world_size, _size_before)


def _first_wait(own: inprocess.Settings, target: int) -> float:
    """Return how long it waits for them, and for those that the last call was without."""
    waits = FIRST_CALL * own.barrier_timeout
    return min(waits, own.heartbeat_timeout) if _last_state and _last_state.world_size < target else waits


def _profile() -> Profile:
    """Return this rank's profile: the role, host and labels of its node. Each iteration replaces its port."""
    towards = Address(os.environ.get("MASTER_ADDR", "localhost"), 1)
    endpoint, role = Endpoint(address_towards(towards), 1), os.environ.get("ROLE_NAME") or "default"
    return Profile(endpoint, 1, role, os.uname().nodename, labels(), party=party())


def _rendezvous(plan: Plan, world_size: int) -> Settings:
    """Return the settings of the ranks' register. It only counts faults; the call judges them. Its limits are those of every
    rank, however many processes the launcher has started with it."""
    own = plan.settings
    upscale = os.environ.get(SCOPE) == "rank" if plan.upscale is None else plan.upscale
    target = _first_target(world_size, upscale)
    return Settings(
        limits=Limits(1, NODES_MAX, COUNT_MAX - 1),
        first_target=target,
        join_timeout=own.barrier_timeout,
        last_call_timeout=own.last_call_wait,
        first_call_timeout=_first_wait(own, target),
        keep_alive_interval=own.heartbeat_interval,
        keep_alive_max_attempt=max(2, math.ceil(own.heartbeat_timeout / own.heartbeat_interval)),
        leave_timeout=own.leave_timeout,
        overdue_timeout=OVERDUE * own.barrier_timeout,
        upscale_after=0.0 if upscale else NEVER_S,
        helping_above=HELPING_ABOVE,
        helping_patience=HELPING_PATIENCE_S,
    )


def _charge(plan: Plan, me: Node, place: Mapping[str, Any]) -> Charge:
    own = plan.settings
    return Charge(me, place, rules_of(own), own.heartbeat_interval, _own(plan.monitor_log, me))


def _own(path: str | None, me: Node) -> Path | None:
    """Return this rank's file."""
    return Path(path.replace("{rank}", me.slot)) if path else None
