"""Callbacks that print one line at each step of a restart, for a restarter around the job that reads its output."""

from __future__ import annotations

import sys
from datetime import datetime

from .abort import Abort
from .completion import Completion
from .initialize import Initialize
from .state import FrozenState
from .terminate import Terminate


class NestedRestarterLogger:
    """A name of nvidia-resiliency-ext's, which says what to use: the callbacks of this module print by themselves."""

    def __init__(self) -> None:
        """Raises TypeError."""
        raise TypeError("NestedRestarterLogger: leave it out; the callbacks print their lines to stdout by themselves")


class NestedRestarterCallback:
    """Prints the state of the restarter, and its stage if it has one, on the rank that speaks for the job."""

    restarter_state: str
    restarter_stage: str | None = None

    def __init__(self, restarter_state: str, restarter_stage: str | None = None, special_rank: int = 0) -> None:
        self.restarter_state, self.restarter_stage, self.special_rank = restarter_state, restarter_stage, special_rank

    def __call__(self, state: FrozenState) -> FrozenState:
        if state.initial_rank == self.special_rank:
            stage = "" if self.restarter_stage is None else f" stage={self.restarter_stage}"
            text = f"[NestedRestarter] name=[InProcess] state={self.restarter_state}{stage}"
            when = datetime.now().isoformat(" ", "milliseconds").replace(".", ",")
            sys.stdout.write(f"[{when}] [ALWAYS] [InprocessRestarter.Restarter] {text}\n")
            sys.stdout.flush()
        return state


class NestedRestarterHandlingCompleted(NestedRestarterCallback, Initialize):
    """An `initialize`: the restarter begins, and later each restart is over."""

    def __init__(self, special_rank: int = 0) -> None:
        super().__init__("initialize", None, special_rank)

    def __call__(self, state: FrozenState) -> FrozenState:
        super().__call__(state)
        self.restarter_state, self.restarter_stage = "handling", "completed"
        return state


class NestedRestarterHandlingStarting(NestedRestarterCallback, Abort):
    """An `abort`: a restart begins."""

    def __init__(
        self, restarter_state: str = "handling", restarter_stage: str | None = "starting", special_rank: int = 0
    ) -> None:
        super().__init__(restarter_state, restarter_stage, special_rank)


class NestedRestarterFinalized(NestedRestarterCallback, Completion):
    """A `completion`: the job has succeeded."""

    def __init__(
        self, restarter_state: str = "finalized", restarter_stage: str | None = None, special_rank: int = 0
    ) -> None:
        super().__init__(restarter_state, restarter_stage, special_rank)


class NestedRestarterAborted(NestedRestarterCallback, Terminate):
    """A `terminate`: this rank gives up."""

    def __init__(
        self, restarter_state: str = "aborted", restarter_stage: str | None = None, special_rank: int = 0
    ) -> None:
        super().__init__(restarter_state, restarter_stage, special_rank)
