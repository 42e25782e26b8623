"""What is to be run: the user's function and callbacks, and where this rank stands while they do.

T asks for the code of a span and for the standing in a new world; the main thread runs the code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import evolve, frozen

from ...core import policies
from ...core.caller import Terms
from ...core.inprocess.words import End, Span
from ...core.world import Fault, Member, Node, Profile, World
from ..clock import Clock
from . import master_port
from .callback_state import Mode, State
from .user_stack import place

Callback: TypeAlias = Callable[[State], object]


@frozen
class Callbacks:
    """The user's, each told the state; what they return is not looked at."""

    initialize: Callback | None = None
    abort: Callback | None = None
    finalize: Callback | None = None
    health_check: Callback | None = None
    completion: Callback | None = None
    terminate: Callback | None = None


class Task:
    """One call's."""

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
    ) -> None:
        """`initial`: rank and world size at the call; `probe_s`: how often it is seen that the main thread gets on;
        `meets_at`: where the ranks meet, in words."""
        self._function = function
        self._callbacks = callbacks
        self.terms = terms
        self.profile = profile
        self.probe_s = probe_s
        self.meets_at = meets_at
        self._clock = clock
        self._since = 0.0
        rank, world_size = initial
        self.state = State(rank, world_size, rank, world_size, rank, world_size)

    @property
    def address(self) -> str:
        return self.profile.endpoint.address

    def stands(self, world: World, me: Node) -> State:
        """In this world from now on; the environment of the workers says so too."""
        placing = policies.place(self.terms.policy, world)
        mine, self._since = placing.places[me], self._clock.now()
        self.state = evolve(
            self.state,
            rank=mine.rank,
            world_size=placing.world_size,
            active_rank=mine.rank if mine.active else None,
            active_world_size=placing.active_world_size,
            iteration=world.round,
            mode=Mode.ACTIVE if mine.active else Mode.INACTIVE,
            fault=None,
        )
        first = next((node for node, place in placing.places.items() if place == policies.Place(0, active=True)), None)
        self._tell_environment(next((each for each in world.members if each.node == first), None))
        return self.state

    def faulted(self, error: BaseException) -> None:
        self.state = evolve(self.state, fault=error)

    def joins(self) -> None:
        """What went wrong is dealt with."""
        self.state = evolve(self.state, fault=None)

    def fault(self, me: Node, end: End, stands: str) -> Fault:
        """Why this rank ends the round, as the job remembers it. `stands`: where its code is, if it runs."""
        error, host = self.state.fault, os.uname().nodename
        return Fault(
            node=me,
            round=end.round,
            rank=self.state.rank,
            local_rank=int(os.environ.get("LOCAL_RANK", "0")),
            pid=os.getpid(),
            exit_code=0,
            after_s=self._clock.now() - self._since,
            world_size=self.state.world_size,
            host=host,
            when=self._clock.wall_text(),
            message=f"{type(error).__name__}: {error}" if error else end.cause.value,
            where=place(error) if error else stands,
        )

    def code(self, span: Span) -> Callable[[], object]:
        """What the main thread runs as this span."""
        calls, state = self._callbacks, self.state
        match span:
            case Span.INITIALIZE:
                return lambda: (_told(calls.initialize, state), _told(calls.health_check, state))
            case Span.FUNCTION:
                return self._function
            case Span.FINALIZE:
                return lambda: _told(calls.finalize, state)
            case Span.CHECK:
                return lambda: _told(calls.health_check, state)
            case Span.COMPLETE:
                return lambda: _told(calls.completion, state)
            case Span.TERMINATE:
                return lambda: _told(calls.terminate, evolve(state, mode=Mode.TERMINATED))

    def abort(self) -> None:
        _told(self._callbacks.abort, self.state)

    def _tell_environment(self, first: Member | None) -> None:
        """What `init_process_group` reads: the ranks, and a port of this iteration's own on rank 0's host."""
        state = self.state
        if first:
            master = first.profile.endpoint
            os.environ["MASTER_ADDR"] = master.address
            master_port.tell(master.port)
        os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
        if state.active_rank is not None:
            os.environ.update(RANK=str(state.active_rank), WORLD_SIZE=str(state.active_world_size))


def mark(error: BaseException) -> str:
    """What two failures have in common that are the same: type and place, whatever the message says."""
    return f"{type(error).__module__}.{type(error).__qualname__} {place(error)}"


def _told(callback: Callback | None, state: State) -> object:
    return callback(state) if callback else None
