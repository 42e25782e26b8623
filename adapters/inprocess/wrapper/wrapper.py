"""The wrapper: it calls a training function again, on every rank and in the same process, when any rank faults.

    @Wrapper()
    def train(call: CallWrapper | None = None) -> None: ...

The parameters are those of nvidia-resiliency-ext's wrapper: a program that uses that one changes its import.
docs/inprocess.md lists the differences. Nothing here decides: the machine is `core.inprocess`, each iteration's rendezvous
`core.rendezvous`.
"""

from __future__ import annotations

import functools
import math
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Never, TypeVar

from ....core import inprocess
from ....core.caller import Terms, in_order
from ....core.inprocess import progress_limits as watchdog
from ....core.policies import Policy
from ....core.world import Fault
from ..gate.signal_handlers import installed
from ..rank.aborts import AbortTorchDistributed, has_groups
from ..rank.callbacks import Callback, Callbacks, State
from ..rank.outcomes import NestedCall, tell
from ..shared_page import NS
from ..thread_events import LimitsChanged
from ..user_stack import own
from .assembly import Assembly, Parts, Plan
from .callables import misfit, returns_at_once, wanting, with_value
from .parameters import (
    LONGEST_S,
    Duration,
    absolute_path,
    at_least_one,
    count,
    path,
    policy,
    replace_wait_s,
    seconds,
    something_to_call,
    span,
    yes_or_no,
)
from .sections import Atomic, Limited
from .stores import Store, store_of_the_launcher

Result = TypeVar("Result")

WRAPPED: Final = "__elastic_wrapped__"
"""The attribute of a wrapped function. `functools.wraps` hands it on to what a decorator makes of one."""

ABORT = AbortTorchDistributed()
"""The default abort. It does nothing unless torch.distributed is imported."""


class Wrapper:
    """A decorator for functions. Durations are timedeltas or seconds. The intervals of the monitor's thread and process are
    accepted and unused: nothing polls."""

    def __init__(
        self,
        *bare: Never,
        store_factory: Callable[..., Store] | None = None,
        store_kwargs: Mapping[str, Any] | None = None,
        initialize: Callback | None = None,
        abort: Callback | None = ABORT,
        finalize: Callback | None = None,
        health_check: Callback | None = None,
        rank_assignment: Policy | Sequence[Policy] | Callable[[Any], Any] | None = None,
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
        monitor_process_pidfile: str | None = None,
        enabled: bool = True,
        completion: Callback | None = None,
        terminate: Callback | None = None,
        max_iterations: int | None = None,
        min_world_size: int = 1,
        min_active_world_size: int = 1,
        max_rank_faults: int | None = None,
        max_repeats: int | None = None,
        repeat_window: Duration = 60.0,
        fresh_after: int | None = 5,
        unwind_timeout: Duration = 30.0,
        abort_timeout: Duration = 30.0,
        callback_timeout: Duration = 60.0,
        leave_timeout: Duration = 5.0,
        confirm_timeout: Duration = 120.0,
        store_timeout: Duration = 600.0,
        replace_wait: Duration | None = None,
        upscale: bool | None = None,
        on_interrupt: str = "close",
        trace: str | None = None,
    ) -> None:
        """`replace_wait`: how long the next iteration waits for the process that replaces a lost rank; None: 0.5 s if the
        launcher keeps standbys, else 0. `upscale`: let a late rank in at once, which ends the iteration, instead of at the
        next fault; None: only if the launcher starts lost ranks again. `max_repeats`: how often one rank may repeat the same
        exception (type and place), each time within `repeat_window` of the function's start. `fresh_after`: how often in a
        row it may do so before the first ping or section (out of memory: at most 2); then it leaves, and the launcher starts
        a fresh process; None: no limit. `trace`: the directory that gets one file per call, for elastic replay; None: the
        one that ELASTIC_TRACE names, if any. Raises TypeError and ValueError."""
        if bare:
            raise TypeError("its parameters are given by name, and a function not here: write @Wrapper(...) above it")
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
            "repeat_window": repeat_window,
            "leave_timeout": leave_timeout,
            "confirm_timeout": confirm_timeout,
            "store_timeout": store_timeout,
            "replace_wait": replace_wait_s() if replace_wait is None else replace_wait,
        }
        callbacks = {
            "initialize": initialize,
            "abort": abort,
            "finalize": finalize,
            "health_check": health_check,
            "completion": completion,
            "terminate": terminate,
        }
        self.enabled = yes_or_no("enabled", enabled)
        self.plan = Plan(
            inprocess.Settings(
                **{name: span(name, value) for name, value in spans.items()},
                max_iterations=count("max_iterations", max_iterations),
                max_faults=count("max_rank_faults", max_rank_faults),
                max_repeats=count("max_repeats", max_repeats),
                fresh_after=count("fresh_after", fresh_after),
                on_interrupt=_interrupted(on_interrupt),
            ),
            Callbacks(**{name: something_to_call(name, value) for name, value in callbacks.items()}),
            Terms(
                policy(rank_assignment),
                at_least_one("min_world_size", min_world_size),
                at_least_one("min_active_world_size", min_active_world_size),
            ),
            _store_to_make(store_factory, store_kwargs),
            absolute_path("monitor_process_logfile", monitor_process_logfile),
            absolute_path("monitor_process_pidfile", monitor_process_pidfile),
            None if upscale is None else yes_or_no("upscale", upscale),
            path("trace", trace),
        )

    def __call__(self, function: Callable[..., Result]) -> Callable[..., Result | None]:
        """Return the wrapped function. It fills in a parameter that is annotated with CallWrapper. On a rank that is a
        reserve or comes too late it returns None. Raises TypeError, also for a function that is wrapped already."""
        _check_runs(function)
        if not self.enabled:
            return function
        names = wanting(function, CallWrapper)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Result | None:
            call = CallWrapper(self.plan)
            positional, named = with_value(function, names, args, kwargs, call)
            if why := misfit(function, positional, named):
                raise TypeError(why)
            return call.run(functools.partial(function, *positional, **named))

        setattr(wrapped, WRAPPED, True)
        return wrapped


class CallWrapper:
    """One call of a wrapped function. A parameter of the function that is annotated with this class receives it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._call: Assembly | None = None

    # --- for the function

    @property
    def iteration(self) -> int:
        """How many iterations ended before this one."""
        return self.state.iteration

    @property
    def state(self) -> State:
        """This rank's place in the present iteration."""
        assert self._call
        return self._call.task.state

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The failure records of all ranks so far, by iteration: of each the cause first, and its echoes last. Asks the
        store."""
        assert self._call
        return in_order(self._call.backend.notes.faults())

    @own
    def ping(self) -> None:
        """Report progress. From an iteration's first ping on, only pings count as progress. A safe point."""
        self._progress.pinged()
        self._gate.ping()

    @own
    def check(self) -> None:
        """Raise here if the iteration is over: a safe point."""
        self._gate.check()

    def atomic(self) -> Atomic:
        """Return a section within which no abort and no restart begins. It cannot be entered once one has begun."""
        return Atomic(self._gate)

    def section(self, name: str, limit: Duration) -> Limited:
        """Return a stretch of code that may make no progress for this long; more than 31 years is no limit."""
        soft, hard = self._limits()
        limits = watchdog.within(watchdog.Limits(soft, hard), seconds(f"section {name}: limit", limit))
        return Limited(self._gate, _ns(limits.soft_s), _ns(limits.hard_s), self._limits_changed)

    def disable_hang_protection(self) -> Limited:
        """Return a stretch of code without limits. Stretches nest."""
        return Limited(self._gate, 0, 0, self._limits_changed)

    # --- for the wrapper

    def run(self, function: Callable[[], Result]) -> Result | None:
        """Call the function until an iteration succeeds on all ranks. Return its value; raise what `outcomes` describes."""
        if not _alone.acquire(blocking=False):
            raise NestedCall("a wrapped function is called inside of another one: wrap the outermost alone")
        if has_groups():
            _alone.release()
            raise ValueError(
                "a process group exists at the call, where `not torch.distributed.is_initialized()` must hold: make it in "
                "the function"
            )
        try:
            self._parts = Parts()
            self._gate, self._progress = self._parts.gate, self._parts.progress
            with installed(self._gate, self._parts.page):
                value: Result | None = self._run(function)
        finally:
            _alone.release()
        if self._gate.told:  # no iteration reacted to the signal, so the program's own handler gets it
            signal.raise_signal(self._gate.told)
        return value

    def _run(self, function: Callable[[], object]) -> Any:
        try:
            self._call = Assembly(self._plan, self._parts, function)
        except BaseException:
            self._parts.close()
            raise
        finished = self._call.carry_through()
        if finished.error is None:
            return finished.value
        tell(finished.error)
        raise finished.error

    def _limits_changed(self) -> None:
        self._parts.inbox.put(LimitsChanged())

    def _limits(self) -> tuple[float, float]:
        soft, hard = self._gate.limits()
        return soft / NS or math.inf, hard / NS or math.inf


def _check_runs(function: object) -> None:
    if not callable(function):
        raise TypeError(f"{function!r}: no function; write @Wrapper(...) above one")
    name = getattr(function, "__name__", function)
    if getattr(function, WRAPPED, False):
        raise TypeError(f"{name}: it is wrapped already; write @Wrapper(...) once")
    if returns_at_once(function):
        raise TypeError(f"{name}: a call of it runs nothing yet; wrap what runs it")


def _interrupted(given: str) -> inprocess.OnInterrupt:
    try:
        return inprocess.OnInterrupt(given)
    except ValueError:
        raise ValueError(f"on_interrupt: close or leave, not {given!r}") from None


def _store_to_make(factory: Any, given: object) -> Callable[[], Store]:
    """Return a function that makes the store; by default the launcher's."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"store_kwargs: named arguments, not {given!r}")
    made = something_to_call("store_factory", factory) or store_of_the_launcher
    return functools.partial(made, **(given or {}))


_alone = threading.Lock()


def _ns(seconds: float) -> int:
    return int(seconds * NS) if seconds <= LONGEST_S else 0
