"""Restart inside the process, for users: `from elastic.inprocess import CallWrapper, Wrapper`. See docs/inprocess.md."""

from __future__ import annotations

from .adapters.inprocess.outcomes import OutcomeUnknown, RestartAbort, Stopped, Unhealthy
from .adapters.inprocess.state import Mode, State
from .adapters.inprocess.stores import RelayStore, TCPStore
from .adapters.wrapper import CallWrapper, Wrapper
from .core.policies import (
    Layer,
    Policy,
    at_most,
    by,
    by_host,
    by_label,
    by_role,
    chain,
    count_at_least,
    count_is,
    count_multiple_of,
    fill_gaps,
    filter_groups,
    multiple_of,
    shift,
    tree,
)

FrozenState = State

__all__ = [
    "CallWrapper",
    "FrozenState",
    "Layer",
    "Mode",
    "OutcomeUnknown",
    "Policy",
    "RelayStore",
    "RestartAbort",
    "State",
    "Stopped",
    "TCPStore",
    "Unhealthy",
    "Wrapper",
    "at_most",
    "by",
    "by_host",
    "by_label",
    "by_role",
    "chain",
    "count_at_least",
    "count_is",
    "count_multiple_of",
    "fill_gaps",
    "filter_groups",
    "multiple_of",
    "shift",
    "tree",
]
