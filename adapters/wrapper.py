"""Restart inside the process: a wrapper that enters a training function again, on every rank, when any rank faults.

    @Wrapper()
    def train(call: CallWrapper | None = None) -> None: ...

The parameters are those of nvidia-resiliency-ext's wrapper, so that a program which uses it changes its import. What is
different is in docs/inprocess.md. Nothing here decides anything: the machine is `core.inprocess`, the rendezvous of each
iteration `core.rendezvous`.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from ..core import inprocess
from ..core.caller import Terms, signature
from ..core.inprocess import watchdog
from ..core.policies import Policy, chain, shift
from ..core.rendezvous import Held, Limits, Settings
from ..core.world import COUNT_MAX, Endpoint, Fault, Life, Node, Profile
from .backends.port import Backend
from .backends.serving import address_towards
from .backends.wire import Address
from .clock import SystemClock
from .heart import Heart
from .inprocess.driver import NS, Driver, LimitsChanged, Message, ToMain
from .inprocess.gate import Gate
from .inprocess.handlers import installed
from .inprocess.injection import wanting, with_value
from .inprocess.outcomes import tell
from .inprocess.own import own
from .inprocess.page import Page
from .inprocess.parameters import (
    Duration,
    absolute_path,
    at_least_one,
    count,
    seconds,
    something_to_call,
    yes_or_no,
)
from .inprocess.progress import Progress
from .inprocess.sections import Atomic, Limited
from .inprocess.serving import serve
from .inprocess.state import State
from .inprocess.stores import Store, store_of_the_launcher
from .inprocess.task import Callback, Callbacks, Task
from .rendezvous_loop import RendezvousLoop
from .workers.environment import SCOPE

Result = TypeVar("Result")

NEVER_S = 1e9
"""A newcomer waits so long before it ends a running iteration."""
FIRST_CALL = 0.75
"""Of the barrier's time-out: how long the first iteration waits for ranks that do not come."""
OVERDUE = 0.75
"""Of it: how long a rank may take to come back from an iteration that is over."""


class Wrapper:
    """Wraps functions. All spans are timedeltas or seconds. The intervals are accepted, though nothing polls."""

    def __init__(
        self,
        *,
        store_factory: Callable[..., Store] | None = None,
        store_kwargs: Mapping[str, Any] | None = None,
        initialize: Callback | None = None,
        abort: Callback | None = None,
        finalize: Callback | None = None,
        health_check: Callback | None = None,
        rank_assignment: Policy | Sequence[Policy] | None = None,
        monitor_thread_interval: Duration = 1.0,
        monitor_process_interval: Duration = 1.0,
        heartbeat_interval: Duration = 1.0,
        progress_watchdog_interval: Duration = 1.0,
        soft_timeout: Duration = 60.0,
        hard_timeout: Duration = 90.0,
        heartbeat_timeout: Duration = 30.0,
        barrier_timeout: Duration = 120.0,
        completion_timeout: Duration = 120.0,
        last_call_wait: Duration = 0.0,
        termination_grace_time: Duration = 5.0,
        monitor_process_logfile: str | None = None,
        enabled: bool = True,
        completion: Callback | None = None,
        terminate: Callback | None = None,
        max_iterations: int | None = None,
        min_world_size: int = 1,
        min_active_world_size: int = 1,
        max_rank_faults: int | None = None,
        unwind_timeout: Duration = 30.0,
        abort_timeout: Duration = 30.0,
        callback_timeout: Duration = 60.0,
        upscale: bool | None = None,
        on_interrupt: str = "close",
    ) -> None:
        """`upscale`: a rank that comes later is let in at once, which ends the iteration, and not at the next fault; None:
        if the launcher starts lost ranks again. Raises TypeError and ValueError."""
        spans = {
            "monitor_thread_interval": monitor_thread_interval,
            "monitor_process_interval": monitor_process_interval,
            "heartbeat_interval": heartbeat_interval,
            "progress_watchdog_interval": progress_watchdog_interval,
            "soft_timeout": soft_timeout,
            "hard_timeout": hard_timeout,
            "heartbeat_timeout": heartbeat_timeout,
            "barrier_timeout": barrier_timeout,
            "completion_timeout": completion_timeout,
            "last_call_wait": last_call_wait,
            "termination_grace_time": termination_grace_time,
            "unwind_timeout": unwind_timeout,
            "abort_timeout": abort_timeout,
            "callback_timeout": callback_timeout,
        }
        self.settings = inprocess.Settings(
            **{name: seconds(name, value) for name, value in spans.items()},
            max_iterations=count("max_iterations", max_iterations),
            max_faults=count("max_rank_faults", max_rank_faults),
            on_interrupt=inprocess.OnInterrupt(on_interrupt),
        )
        for name, value in (("store_kwargs", store_kwargs), ("store_factory", store_factory)):
            kind = Mapping if name == "store_kwargs" else Callable
            if value is not None and not isinstance(value, kind):  # type: ignore[arg-type]
                raise TypeError(f"{name}: {value!r} is {type(value).__name__}")
        self.store_factory, self.store_kwargs = store_factory, dict(store_kwargs or {})
        self.callbacks = Callbacks(
            **{
                name: something_to_call(name, value)
                for name, value in (
                    ("initialize", initialize),
                    ("abort", abort),
                    ("finalize", finalize),
                    ("health_check", health_check),
                    ("completion", completion),
                    ("terminate", terminate),
                )
            }
        )
        self.terms = Terms(
            _policy(rank_assignment),
            at_least_one("min_world_size", min_world_size),
            at_least_one("min_active_world_size", min_active_world_size),
        )
        self.monitor_process_logfile = absolute_path(monitor_process_logfile)
        self.enabled = yes_or_no("enabled", enabled)
        self.upscale = None if upscale is None else yes_or_no("upscale", upscale)

    def __call__(self, function: Callable[..., Result]) -> Callable[..., Result | None]:
        """The function, wrapped; a parameter annotated with CallWrapper need not be given. A rank that is a reserve or comes
        too late returns None."""
        if not self.enabled:
            return function
        names = wanting(function, CallWrapper)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Result | None:
            call = CallWrapper(self)
            positional, named = with_value(function, names, args, kwargs, call)
            return call.run(functools.partial(function, *positional, **named))

        return wrapped


class CallWrapper:
    """One call of a wrapped function, as the function sees it: a parameter that is annotated with this class is given it."""

    def __init__(self, wrapper: Wrapper) -> None:
        self._wrapper = wrapper
        self._page = Page.new()
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._orders: SimpleQueue[ToMain] = SimpleQueue()
        self._gate = Gate(self._page, self._inbox.put)
        self._progress = Progress(self._page)
        self._task: Task | None = None
        self._backend: Backend | None = None

    # --- for the function

    @property
    def iteration(self) -> int:
        """How many iterations have ended before this one."""
        return self.state.iteration

    @property
    def state(self) -> State:
        """Where this rank stands."""
        assert self._task
        return self._task.state

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The job's record of what went wrong so far, on any rank. Asks the store."""
        assert self._backend
        return self._backend.faults()

    @own
    def ping(self) -> None:
        """The training gets on. From the first ping of an iteration on, only pings count as progress. A safe point."""
        self._progress.pinged()
        self._gate.ping()

    @own
    def check(self) -> None:
        """A safe point: raises here if the iteration is over."""
        self._gate.check()

    def atomic(self) -> Atomic:
        """A section within which no abort begins and no restart; it is not entered once one has begun."""
        return Atomic(self._gate)

    def section(self, name: str, limit: Duration) -> Limited:
        """A stretch that may go without progress for so long."""
        soft, hard = self._limits()
        limits = watchdog.within(watchdog.Limits(soft, hard), seconds(f"section {name}: limit", limit))
        return _Section(self._gate, _ns(limits.soft_s), _ns(limits.hard_s), self._inbox)

    def disable_hang_protection(self) -> Limited:
        """A stretch that may take as long as it likes. Nests."""
        return _Section(self._gate, 0, 0, self._inbox)

    # --- for the wrapper

    def run(self, function: Callable[[], Result]) -> Result | None:
        """Call it until an iteration succeeds on all ranks."""
        if not _alone.acquire(blocking=False):
            raise RuntimeError("a wrapped function is called inside of another one: wrap the outermost alone")
        try:
            with installed(self._gate, self._page):
                return self._run(function)  # type: ignore[no-any-return]
        finally:
            _alone.release()

    def _run(self, function: Callable[[], object]) -> Any:
        global _calls, _token
        wrapper, clock = self._wrapper, SystemClock()
        rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        store = wrapper.store_factory(**wrapper.store_kwargs) if wrapper.store_factory else store_of_the_launcher()
        space, _calls = str(_calls), _calls + 1
        backend = self._backend = store.backend(space, clock)
        me = Node(str(rank), int(clock.wall() * 1000))
        profile = _profile()
        self._task = Task(
            function,
            wrapper.callbacks,
            wrapper.terms,
            profile,
            (rank, world_size),
            wrapper.settings.progress_watchdog_interval,
        )
        held = Held(
            me,
            profile,
            self._rendezvous(world_size),
            Life(os.urandom(8).hex()),
            policy=functools.partial(signature, wrapper.terms),
        )
        driver = Driver(
            self._task,
            inprocess.Call(wrapper.settings, token=_token),
            self._gate,
            self._page,
            self._progress,
            self._inbox,
            self._orders,
            lambda post: RendezvousLoop(backend, held, clock, post),
            me,
            clock,
        )
        heart = Heart(backend, me, wrapper.settings.heartbeat_interval, clock, lambda sent_at, life: None)
        heart.start()
        driver.start()
        finished = serve(self._gate, self._orders)
        driver.join()
        heart.stop()
        _token = driver.token
        store.close()
        if finished.error is None:
            return finished.value
        tell(finished.error)
        raise finished.error

    def _rendezvous(self, world_size: int) -> Settings:
        """Of the register in which the ranks meet: it counts faults, and it is the call that judges them."""
        own, upscale = self._wrapper.settings, self._wrapper.upscale
        if upscale is None:
            upscale = os.environ.get(SCOPE) == "rank"
        return Settings(
            limits=Limits(1, world_size, COUNT_MAX - 1),
            join_timeout=own.barrier_timeout,
            last_call_timeout=own.last_call_wait,
            first_call_timeout=FIRST_CALL * own.barrier_timeout,
            keep_alive_interval=own.heartbeat_interval,
            keep_alive_max_attempt=max(2, math.ceil(own.heartbeat_timeout / own.heartbeat_interval)),
            leave_timeout=own.leave_timeout,
            overdue_timeout=OVERDUE * own.barrier_timeout,
            upscale_after=0.0 if upscale else NEVER_S,
        )

    def _limits(self) -> tuple[float, float]:
        soft, hard = self._gate.limits()
        return soft / NS or math.inf, hard / NS or math.inf


class _Section(Limited):
    """Tells T when the limits change, which sleeps until the old ones pass."""

    def __init__(self, gate: Gate, soft: int, hard: int, inbox: SimpleQueue[Message]) -> None:
        super().__init__(gate, soft, hard)
        self._inbox = inbox

    @own
    def __enter__(self) -> None:
        super().__enter__()
        self._inbox.put(LimitsChanged())

    @own
    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._inbox.put(LimitsChanged())
        super().__exit__(kind, error, traceback)


_alone = threading.Lock()
_calls = 0
"""Calls of wrapped functions in this process so far: each has a register of its own."""
_token = 0
"""Of the last span of the last call."""


def _policy(given: object) -> Policy:
    """One policy, or several, one after the other."""
    if given is None:
        return shift()
    several = [given] if isinstance(given, Policy) else given
    if not isinstance(several, list | tuple) or not all(isinstance(each, Policy) for each in several):
        raise TypeError(f"rank_assignment: policies of elastic.inprocess, not {given!r}")
    return chain(*several)


def _profile() -> Profile:
    """What this rank says of itself. Its port is another in each iteration."""
    towards = Address(os.environ.get("MASTER_ADDR", "localhost"), 1)
    return Profile(Endpoint(address_towards(towards), 1), 1, "default", os.uname().nodename)


def _ns(seconds: float) -> int:
    return int(seconds * NS) if math.isfinite(seconds) else 0
