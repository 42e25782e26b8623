"""Restart inside the process, for users: `from elastic.inprocess import CallWrapper, Wrapper`. See docs/inprocess.md."""

from __future__ import annotations

from .adapters.inprocess.outcomes import OutcomeUnknown, RestartAbort, Stopped, Unhealthy
from .adapters.inprocess.state import Mode, State
from .adapters.inprocess.stores import RelayStore, TCPStore
from .adapters.wrapper import CallWrapper, Wrapper

FrozenState = State

__all__ = [
    "CallWrapper",
    "FrozenState",
    "Mode",
    "OutcomeUnknown",
    "RelayStore",
    "RestartAbort",
    "State",
    "Stopped",
    "TCPStore",
    "Unhealthy",
    "Wrapper",
]
