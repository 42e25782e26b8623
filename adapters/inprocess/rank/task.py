"""The user's function and callbacks, and this rank's place in the world while they run.

The driver asks for the code of a span and for the place in a new world; the main thread runs the code.
"""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ....core import policies
from ....core.caller import Terms
from ....core.causes import echo_of
from ....core.inprocess.words import Span
from ....core.values import evolve
from ....core.world import Endpoint, Fault, Member, Node, Origin, Profile, World
from ...clock import Clock
from ...store import numerals
from ...workers.startup.elastic_raise import text_of
from ..user_stack import place, related
from .callbacks import Callback, Callbacks, Composed, Mode, State
from .outcomes import said

Labels: TypeAlias = Callable[[State, World | None], tuple[tuple[str, str], ...]]
"""Returns what a rank says of itself, by its state and its last world."""

_MASTER_PORT: Final = "MASTER_PORT"
_libc = ctypes.CDLL(None)
_port_variable = ctypes.create_string_buffer(f"{_MASTER_PORT}=65535".encode())
"""The string that the C library's environment holds. The C library keeps every string that `setenv` was given, since a
caller may still hold it; `putenv` takes the caller's own string, which `tell_port` overwrites. So nothing piles up."""


NO_GPU_MEMORY: Final = ("CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


class Task:
    """The task of one call."""

    def __init__(
        self,
        function: Callable[[], Any],
        callbacks: Callbacks,
        terms: Terms,
        profile: Profile,
        initial: tuple[int, int],
        probe_s: float,
        meets_at: str,
        clock: Clock,
        labels: Labels,
    ) -> None:
        """`initial` is the rank and world size at the call, `probe_s` the interval of the progress probe, `meets_at` the
        name of the store in which the ranks meet, `labels` what this rank says of itself when it joins."""
        self._function = function
        self._callbacks = callbacks
        self.terms = terms
        self.profile = profile
        self._labels = labels
        self._world: World | None = None
        self.probe_s = probe_s
        self.meets_at = meets_at
        self._clock = clock
        self._since = 0.0
        rank, world_size = initial
        self.state = State(rank, world_size, rank, world_size, rank, world_size)

    @property
    def address(self) -> str:
        return self.profile.endpoint.address

    def introduction(self, endpoint: Endpoint) -> Profile:
        """Return what this rank says of itself when it joins the next world: its node's labels and its own."""
        own = self._labels(self.state, self._world)
        return evolve(self.profile, endpoint=endpoint, labels=tuple(sorted((*self.profile.labels, *own))))

    def enters(self, world: World, me: Node, placing: policies.Placing) -> State:
        """Take this node's place in a new world, and tell it to the environment. Return the new state."""
        self._world = world
        mine, self._since = placing.places[me], self._clock.now()
        self.state = replace(
            self.state,
            rank=mine.rank,
            world_size=placing.world_size,
            active_rank=mine.rank if mine.active else None,
            active_world_size=placing.active_world_size,
            iteration=world.round,
            mode=Mode.ACTIVE if mine.active else Mode.INACTIVE,
            fn_exception=None,
        )
        first = next((node for node, place in placing.places.items() if place == policies.Place(0, active=True)), None)
        self._tell_environment(next((each for each in world.members if each.node == first), None))
        return self.state

    def faulted(self, error: BaseException) -> None:
        self.state = replace(self.state, fn_exception=error)

    def joins(self) -> None:
        """Forget the fault: it has been dealt with."""
        self.state = replace(self.state, fn_exception=None)

    def fault(self, me: Node, round: int, error: BaseException | None, cause: str, where: str = "") -> Fault:
        """Return the failure record with which this rank ends the round. Without an error `cause` stands there, and `where`
        is where its code is, if it runs. An echo of another rank's failure is marked as one."""
        host = os.uname().nodename
        echo = echo_in(error) if error else ""
        return Fault(
            node=me,
            round=round,
            rank=self.state.rank,
            local_rank=numerals.number(os.fsencode(os.environ.get("LOCAL_RANK", ""))) or 0,
            pid=os.getpid(),
            exit_code=None,
            after_s=self._clock.now() - self._since,
            world_size=self.state.world_size,
            host=host,
            when=self._clock.wall_text(),
            message=cause if error is None else said(error),
            where=where if error is None else place(error),
            remark=echo and f"an echo of another rank's failure: {echo}",
            callstack=_chain(error) if error else "",
            origin=Origin.END if error is None else Origin.RAISE,
            at_s=self._clock.now(),
        )

    def code(self, span: Span) -> Callable[[], object] | None:
        """Return what the main thread runs as this span; None if the user gave nothing for it."""
        if span is Span.FUNCTION:
            return self._function
        calls = self._callbacks
        steps = {
            Span.INITIALIZE: (calls.initialize, calls.health_check),
            Span.FINALIZE: (calls.finalize,),
            Span.CHECK: (calls.health_check,),
            Span.COMPLETE: (calls.completion,),
            Span.TERMINATE: (calls.terminate,),
        }[span]
        state = replace(self.state, mode=Mode.TERMINATED) if span is Span.TERMINATE else self.state
        given = [each for each in steps if each is not None]
        return (lambda: [each(state) for each in given]) if given else None

    def abort(self) -> None:
        """Run the user's abort. Of several as one, each runs even if another fails. Raises the first error."""
        abort = self._callbacks.abort
        _called(abort.each if isinstance(abort, Composed) else abort, self.state)

    def _tell_environment(self, first: Member | None) -> None:
        """Set what `init_process_group` reads: the ranks, and this iteration's port on rank 0's host."""
        state = self.state
        if first:
            master = first.profile.endpoint
            os.environ["MASTER_ADDR"] = master.address
            tell_port(master.port)
        os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
        if state.active_rank is not None:
            os.environ.update(RANK=str(state.active_rank), WORLD_SIZE=str(state.active_world_size))


def mark(error: BaseException) -> str:
    """Return the type and place of an error. Two errors with one mark are the same failure; their messages may differ."""
    return f"{type(error).__module__}.{type(error).__qualname__} {place(error)}"


def echo_in(error: BaseException) -> str:
    """Return the row of the tables of echoes that this error matches, or the one that it was raised from; "" for no echo."""
    return echo_of(said(first_raised(error)), None)


def _chain(error: BaseException) -> str:
    """Return the traceback of an error that was raised for another one: who reads the record must know that one too."""
    return "" if first_raised(error) is error else "".join(traceback.format_exception(error))


def traced(error: BaseException) -> object:
    """Return the places of an error's traceback and of those of its causes. Tracebacks with equal places say the same."""
    return tuple(
        (type(each), tuple((frame.f_code, line) for frame, line in traceback.walk_tb(each.__traceback__)))
        for each in related(error)
    )


def first_raised(error: BaseException) -> BaseException:
    """Return the error that this one was raised from, or while it was handled: the first of a traceback."""
    seen = {id(error)}
    while (cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        if id(cause) in seen:
            break
        seen.add(id(error := cause))
    return error


def lacks_memory(error: BaseException) -> bool:
    """Return True if memory of the host or of a GPU is lacking. (torch's error has another base in each version.)"""
    if isinstance(error, MemoryError):
        return True
    is_torchs = type(error).__module__.partition(".")[0] == "torch" and type(error).__name__ == "OutOfMemoryError"
    return is_torchs or (isinstance(error, RuntimeError) and any(words in text_of(error) for words in NO_GPU_MEMORY))


def _called(callback: Callback | None, state: State) -> object:
    return callback(state) if callback else None


def tell_port(port: int) -> None:
    """Set MASTER_PORT, for Python, for C, and for every program that this process starts."""
    _port_variable.value = f"{_MASTER_PORT}={port}".encode()
    _libc.putenv(_port_variable)
    python_s: Any = os.environ
    python_s._data[_MASTER_PORT.encode()] = str(port).encode()  # os.environ[...] = would set the C library's string too
