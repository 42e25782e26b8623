"""The names of nvidia-resiliency-ext's in-process restart, and what each is here: the same, different, or absent.

A name is written as that package's users reach it: `abort.Abort`, a member `wrap.CallWrapper.ping`, a parameter
`wrap.Wrapper(abort)`. What is said of a module or a class holds for all below it that has no entry of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib import import_module
from inspect import signature
from typing import Any

OURS = "elastic.inprocess"
RELEASE = "0.7.0"
"""The release whose names these are. A name that only 0.4.1 had stands here as well."""
TOP = {
    "CallWrapper": "wrap.CallWrapper",
    "Compose": "compose.Compose",
    "FrozenState": "state.FrozenState",
    "Mode": "state.Mode",
    "State": "state.State",
    "Wrapper": "wrap.Wrapper",
}
"""The names that the package itself has as well."""

SAME = frozenset(
    """
    abort abort.Abort abort.AbortPersistentCheckpointProcesses abort.AbortTransformerEngine
    completion completion.Completion
    compose
    exception exception.HealthCheckError exception.TimeoutError
    finalize finalize.Finalize
    health_check health_check.ChainedNVLHealthCheck health_check.FaultCounter health_check.FaultCounterExceeded
    health_check.HealthCheck
    initialize initialize.Initialize initialize.RetryController
    nested_restarter nested_restarter.NestedRestarterAborted nested_restarter.NestedRestarterFinalized
    nested_restarter.NestedRestarterHandlingCompleted nested_restarter.NestedRestarterHandlingStarting
    rank_assignment rank_assignment.ActivateAllRanks rank_assignment.ActiveWorldSizeDivisibleBy rank_assignment.Layer
    rank_assignment.LayerFlag rank_assignment.MaxActiveWorldSize rank_assignment.ShiftRanks
    rank_filter rank_filter.ActiveWorldSizeDivisibleBy rank_filter.MaxActiveWorldSize
    rank_filter.WorldSizeDivisibleBy
    state state.FrozenState state.Mode state.State
    terminate terminate.Terminate
    wrap wrap.CallWrapper
    """.split()
)

FILTERED = "the active ranks get the first numbers as `rank` too, in their order, and the reserves those that follow"
DIFFERENT: Mapping[str, str] = {
    "abort.AbortTorchDistributed": "it also frees ranks that wait in gloo, or for the iteration's TCPStore",
    "abort.AbortTorchDistributed(torch_fr_trace_path)": "a path is refused: set TORCH_NCCL_DUMP_ON_TIMEOUT, and torch "
    "writes its flight recorder's trace",
    "compose.Compose": "it takes plain functions too; after a part that returns None the next gets the same arguments",
    "exception.InternalError": "never raised: a process in which the wrapper itself goes wrong ends with code 70",
    "exception.RestartAbort": "it derives from SystemExit, so a process that does not catch it ends with code 71",
    "exception.RestartError": "what a call raises at its end derives from SystemExit too, and ends the process with a code "
    "for its launcher",
    "finalize.ThreadedFinalize": "it needs no CUDA, and raises the error of its function",
    "health_check.ChainedGPUHealthCheck": "it runs only if it is given; memory whose remapping failed is unhealthy too",
    "health_check.ChainedNicHealthCheck": "it runs only if it is given, and counts all ports of the nearest device",
    "health_check.CudaHealthCheck": "it also computes on the device, which is the current one whatever LOCAL_RANK says",
    "monitor_thread": "it has the exception alone",
    "monitor_thread.RankShouldRestart": "an Exception; the wrapper interrupts the function by another one",
    "nested_restarter.NestedRestarterCallback": "without a logger: the line goes to stdout",
    "nested_restarter.NestedRestarterLogger": "a TypeError that says to leave it out: the line goes to stdout",
    "rank_assignment.FillGaps": "ranks past the end fill the gaps below it; there a rank can get a number past the end",
    "rank_assignment.FilterCountGroupedByKey": "a group that is not fit waits as reserves, and its processes live; each "
    "rank names its group before the world is known, by its state in the last iteration",
    "rank_assignment.FilterCountGroupedByKey(timeout)": "not needed: no rank waits for another",
    "rank_assignment.RankAssignment": "each rank calls it for all ranks, so it may depend on the context alone",
    "rank_assignment.RankAssignmentCtx": "without a store to ask",
    "rank_assignment.RankDiscarded": "such a rank becomes a reserve",
    "rank_assignment.RankFilter": FILTERED,
    "rank_filter.RankFilter": FILTERED,
    "rank_assignment.Tree": "a branch that is too small waits as reserves; a rank that the launcher starts again has the "
    "tree grown anew; it is not called for one rank, so a derived class cannot call it either, and it does not warn when it "
    "renumbers the ranks",
    "store": "it has the TCPStore alone",
    "store.FileStore": "a TypeError that says what to use: a TCPStore, or the launcher's store",
    "store.TCPStore": "a process of its own serves it, so it outlives rank 0; under `elastic launch` it is not needed",
    **{
        f"store.TCPStore({name})": "accepted and not used"
        for name in ("multi_tenant", "timeout", "use_libuv", "wait_for_workers", "world_size")
    },
    "wrap.Wrapper": "it takes plain functions, policies and seconds too",
    "wrap.Wrapper(abort)": "one that raises makes its rank leave, since what it left open would pile up",
    "wrap.Wrapper(barrier_timeout)": "the first iteration waits for three quarters of it, then begins without the missing",
    "wrap.Wrapper(heartbeat_interval)": "how often a rank shows the others that it lives",
    "wrap.Wrapper(initialize)": "a reserve that fails in it leaves, and the others go on",
    "wrap.Wrapper(last_call_wait)": "0 by default: faults at one time are one restart anyway",
    "wrap.Wrapper(monitor_process_logfile)": "its lines have other words",
    "wrap.Wrapper(monitor_process_pidfile)": "a file that was there stays; else it goes with the monitor",
    "wrap.Wrapper(terminate)": "what it raises is logged, and the call raises why it ended",
    "wrap.Wrapper(monitor_process_interval)": "accepted and not used: nothing polls",
    "wrap.Wrapper(monitor_thread_interval)": "accepted and not used: nothing polls",
    "wrap.Wrapper(health_check)": "only what is given runs: no check of the GPU is added",
    "wrap.Wrapper(hard_timeout)": "one hang does not kill a rank: a signal ends it at `soft_timeout`",
    "wrap.Wrapper(rank_filter)": "taken as release 0.4.1 did; compose it into `rank_assignment`",
    "wrap.Wrapper(store_factory)": "a class of elastic.inprocess, by default the launcher's store",
    "wrap.Wrapper(store_kwargs)": "without effect under `elastic launch`",
}

_PARTS = "a part of that wrapper's own works"
ABSENT: Mapping[str, str] = {
    "abort.AbortTorchDistributed.collect_fr_trace": "torch writes the trace by itself",
    "abort.AbortTorchDistributed.shutdown_all_process_group_backends": _PARTS,
    "abort.AbortTorchDistributed.shutdown_process_group_backend": _PARTS,
    "attribution": "`CallWrapper.faults` has the failures of all ranks, with their texts",
    "compose.T": _PARTS,
    "compose.find_common_ancestor": _PARTS,
    "monitor_process": "another process does this, which imports no torch",
    "monitor_thread.MonitorThread": _PARTS,
    "monitor_thread.async_abort_main_thread": _PARTS,
    "monitor_thread.async_raise": _PARTS,
    "monitor_thread.delayed_async_raise": _PARTS,
    "monitor_thread.reraise_if_unraisable": _PARTS,
    "nested_restarter.NestedRestarterCallback(logger)": "the line goes to stdout",
    "nested_restarter.NestedRestarterHandlingCompleted(restarter_stage)": "it has stages of its own",
    "nested_restarter.NestedRestarterHandlingCompleted(restarter_state)": "it has states of its own",
    "param_utils": _PARTS,
    "progress_watchdog": _PARTS,
    "rank_assignment.FilterCountGroupedByKey.instance_count": _PARTS,
    "rank_assignment.Node": "`topology.Topology` is a tree of values",
    "rank_assignment.Tree.build_tree": _PARTS,
    "rank_assignment.Tree.filter_active_world_size": _PARTS,
    "rank_assignment.Tree.get_state_from_tree": _PARTS,
    "rank_assignment.Tree.recompute_rank": _PARTS,
    "rank_assignment.Tree.replace_with_backfill": _PARTS,
    "rank_assignment.Tree.replace_with_inactive": _PARTS,
    "rank_assignment.Tree.shift_ranks": _PARTS,
    "rank_assignment.Tree.update_tree": _PARTS,
    "rank_assignment.bounded_activate": _PARTS,
    "rank_assignment.propagate_terminations": _PARTS,
    "sibling_monitor": "the launcher's rendezvous sees which ranks live",
    "state.freeze_dataclass": _PARTS,
    "store.BarrierError": "the ranks meet in a rendezvous, not at barriers",
    "store.BarrierOverflow": "the ranks meet in a rendezvous, not at barriers",
    "store.BarrierTimeout": "the ranks meet in a rendezvous, not at barriers",
    "store.PrefixStore": "torch has one for the program's own store",
    "store.StoreMixin": "a store of ours is a port to a register",
    "store.TCPStore.TCP_STORE_HOST_RANK": "no rank serves the store",
    "store.TCPStore.critical_ranks": "no rank serves the store",
    "tools.inject_fault": "only tests need it, and release 0.7.0 has none",
    "utils": _PARTS,
    "wrap.CallWrapper(wrapper)": "the wrapper makes it, one for each call",
    "wrap.CallWrapper.shutdown": "the call ends by itself",
    "wrap.HealthCheckPassed": _PARTS,
    "wrap.reserve_fn": _PARTS,
}


class Kind(Enum):
    SAME = "same"
    DIFFERENT = "different"
    ABSENT = "absent"
    UNKNOWN = "unknown"


def told(name: str) -> tuple[Kind, str]:
    """Return what a name is here, and why. What has no entry is the same if the code has it and its class an entry. So are
    the names that are ours alone."""
    name = full(name)
    for place in (name, *_above(name)):
        if place in ABSENT:
            return Kind.ABSENT, ABSENT[place]
    if name in DIFFERENT:
        return Kind.DIFFERENT, DIFFERENT[name]
    is_member = any("." in place and place in SAME | DIFFERENT.keys() for place in _above(name))
    if name in SAME or hasattr(import_module(OURS), name) or (is_member and there(name)):
        return Kind.SAME, ""
    return Kind.UNKNOWN, f"no name of nvidia-resiliency-ext {RELEASE}"


def there(name: str) -> bool:
    """Return True if elastic.inprocess has this name."""
    path, _, parameter = full(name).rstrip(")").partition("(")
    module, *inner = path.split(".")
    try:
        found: Any = import_module(f"{OURS}.{module}")
        for each in inner:
            found = getattr(found, each)
        return not parameter or parameter in signature(found).parameters
    except (ImportError, AttributeError, TypeError, ValueError):
        return parameter == "" and _is_field(module, inner)


def _is_field(module: str, inner: list[str]) -> bool:
    """Return True for a field of a class, which only its instances have."""
    return len(inner) > 1 and there(f"{'.'.join((module, *inner[:-1]))}({inner[-1]})")


def full(name: str) -> str:
    """Return the name with its module."""
    first = re.match(r"\w*", name)
    own = first.group() if first else ""
    return TOP.get(own, own) + name[len(own) :]


def _above(name: str) -> Iterator[str]:
    """Yield the class and the module that a name belongs to."""
    while (cut := max(name.rfind("."), name.rfind("("))) > 0:
        name = name[:cut]
        yield name
