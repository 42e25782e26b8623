"""The restart of a function inside its process: `from elastic.inprocess import CallWrapper, Wrapper`. See docs/inprocess.md.

A program that uses `nvidia_resiliency_ext.inprocess` can import this package in its place. This room translates the names of
that one into the wrapper's own (`adapters.inprocess`) and into rank policies (`core.policies`). No other part knows them.
"""

from __future__ import annotations

import logging

from ..adapters.inprocess.wrapper.health_checks import NvmlHealthCheck, within
from ..adapters.inprocess.wrapper.stores import RelayStore, TCPStore
from ..core.policies import (
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
from . import (
    abort,
    completion,
    exception,
    finalize,
    health_check,
    initialize,
    monitor_thread,
    nested_restarter,
    rank_assignment,
    rank_filter,
    state,
    store,
    terminate,
    wrap,
)
from .abort import AbortTorchDistributed
from .compose import Compose
from .exception import OutcomeUnknown, RestartAbort, Stopped, Unhealthy
from .health_check import CudaHealthCheck, FaultCounter
from .initialize import RetryController
from .state import FrozenState, Mode, State
from .wrap import CallWrapper, Wrapper

logging.getLogger("nvrx").parent = logging.getLogger("elastic")
logging.getLogger("elastic.inprocess").parent = logging.getLogger("nvrx")
"""A program that sets nvidia-resiliency-ext's logger up, by its level or with handlers, has set up ours."""

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
    "completion",
    "count_at_least",
    "count_is",
    "count_multiple_of",
    "exception",
    "fill_gaps",
    "filter_groups",
    "finalize",
    "health_check",
    "initialize",
    "monitor_thread",
    "multiple_of",
    "nested_restarter",
    "rank_assignment",
    "rank_filter",
    "shift",
    "state",
    "store",
    "terminate",
    "tree",
    "within",
    "wrap",
]
