"""The restart of a function inside its process: `from elastic.inprocess import CallWrapper, Wrapper`. See docs/inprocess.md.

A program that uses `nvidia_resiliency_ext.inprocess` can import this module in its place. The modules `abort`,
`health_check`, `initialize`, `rank_assignment` and `exception` of that package are classes of the same names here.
"""

from __future__ import annotations

from typing import Any

from .adapters.inprocess.aborts import AbortTorchDistributed
from .adapters.inprocess.callbacks import Compose as _Composed
from .adapters.inprocess.callbacks import FaultCounter, Mode, RetryController, State
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
    """Return one callback, or one policy, that does what these do, the last one first."""
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
    """That package's names for `shift`, `at_most` and the other policies here."""

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
