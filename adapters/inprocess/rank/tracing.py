"""The trace of a wrapped call, written by a background thread, so that the rank never waits for the disk.

If the trace cannot be written, one warning says so, and the training goes on.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os

from ....core.inprocess import Call
from ....core.rendezvous import Held
from ...clock import Clock
from ...report.news import NoTrace, Trace, TraceLost

log = logging.getLogger("elastic.inprocess")

PAUSE_S = 0.05
"""The writing thread's pause: within a restart of a few milliseconds it would delay the threads that decide."""
END_TIMEOUT_S = 1.0
"""How long a process that ends waits for the disk."""


def traced(directory: str | None, held: Held, call: Call, clock: Clock) -> Trace:
    """Return the trace of this call, begun in a file of its own; one that records nothing if no directory is given."""
    if not directory:
        return NoTrace()
    from ...report.trace_file import TraceFile  # imports the codec, which an untraced rank does not need

    trace = TraceFile(os.path.join(os.path.abspath(directory), ""), end_timeout_s=END_TIMEOUT_S, pause_s=PAUSE_S)
    trace.begin_call(held, call, clock, functools.partial(_lost, held.who.node.slot))
    atexit.register(trace.end)  # the writing thread is a daemon
    return trace


def untraced(trace: Trace) -> None:
    """End the trace: no step follows."""
    trace.end()
    atexit.unregister(trace.end)


def _lost(rank: str, lost: TraceLost) -> None:
    log.warning("rank %s is traced no longer: %s", rank, lost.text)
