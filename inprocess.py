"""Restart inside the process, for users: `from elastic.inprocess import CallWrapper, Wrapper`. See docs/inprocess.md.

A program that uses `nvidia_resiliency_ext.inprocess` imports this in its place. What it finds there in modules (`abort`,
`health_check`, `initialize`, `rank_assignment`, `exception`) stands here under the same names.
"""

from __future__ import annotations

from typing import Any

from .adapters.inprocess.aborts import AbortTorchDistributed
from .adapters.inprocess.callback_state import Mode, State
from .adapters.inprocess.callbacks import Compose as _Composed
from .adapters.inprocess.callbacks import FaultCounter, RetryController
from .adapters.inprocess.health_checks import CudaHealthCheck, NvmlHealthCheck, within
from .adapters.inprocess.outcomes import OutcomeUnknown, RestartAbort, Stopped, Unhealthy
from .adapters.inprocess.stores import RelayStore, TCPStore
from .adapters.inprocess.wrapper import CallWrapper, Wrapper
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


def Compose(*parts: Any) -> Any:
    """Several callbacks, or several policies, as one; as functions compose: the last comes first."""
    if parts and all(isinstance(each, Policy) for each in parts):
        return chain(*reversed(parts))
    return _Composed(*parts)


class abort:
    AbortTorchDistributed = AbortTorchDistributed


class initialize:
    RetryController = RetryController


class health_check:
    CudaHealthCheck = CudaHealthCheck
    FaultCounter = FaultCounter
    NvmlHealthCheck = NvmlHealthCheck


class rank_assignment:
    """Their names for our policies; `shift`, `at_most` and the others are the same."""

    ActivateAllRanks = staticmethod(chain)
    ShiftRanks = staticmethod(shift)
    FillGaps = staticmethod(fill_gaps)
    MaxActiveWorldSize = staticmethod(at_most)
    ActiveWorldSizeDivisibleBy = staticmethod(multiple_of)


class exception:
    RestartAbort = RestartAbort
    RestartError = Stopped
    HealthCheckError = Unhealthy


__all__ = [
    "AbortTorchDistributed",
    "CallWrapper",
    "Compose",
    "CudaHealthCheck",
    "FaultCounter",
    "FrozenState",
    "Layer",
    "Mode",
    "NvmlHealthCheck",
    "OutcomeUnknown",
    "Policy",
    "RelayStore",
    "RestartAbort",
    "RetryController",
    "State",
    "Stopped",
    "TCPStore",
    "Unhealthy",
    "Wrapper",
    "abort",
    "at_most",
    "by",
    "by_host",
    "by_label",
    "by_role",
    "chain",
    "count_at_least",
    "count_is",
    "count_multiple_of",
    "exception",
    "fill_gaps",
    "filter_groups",
    "health_check",
    "initialize",
    "multiple_of",
    "rank_assignment",
    "shift",
    "tree",
    "within",
]
