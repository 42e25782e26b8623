"""A wrapped call's trace: written behind the rank's back, at the least cost that it can be had for.

The rank waits for no disk. Where the trace cannot be written, or no longer, that is said once, and the training goes on.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os

from ...core.inprocess import Call
from ...core.rendezvous import Held
from ..clock import Clock
from ..report.news import NoTrace, Trace, TraceLost

log = logging.getLogger("elastic.inprocess")

PAUSE_S = 0.05
"""A restart takes a few milliseconds, in which the thread that writes would be in the way of those that decide."""
END_TIMEOUT_S = 1.0
"""How long a process that ends waits for the disk."""


def traced(directory: str | None, held: Held, call: Call, clock: Clock) -> Trace:
    """Begun already: one file per call."""
    if not directory:
        return NoTrace()
    from ..report.trace_file import TraceFile  # with the codec behind it, which an untraced rank needs not

    trace = TraceFile(os.path.join(os.path.abspath(directory), ""), end_timeout_s=END_TIMEOUT_S, pause_s=PAUSE_S)
    trace.begin_call(held, call, clock, functools.partial(_lost, held.node.slot))
    atexit.register(trace.end)  # the thread that writes does not keep the process alive
    return trace


def untraced(trace: Trace) -> None:
    """No step follows, and nobody needs to see to that at the end of the process."""
    trace.end()
    atexit.unregister(trace.end)


def _lost(rank: str, lost: TraceLost) -> None:
    log.warning("rank %s is traced no longer: %s", rank, lost.text)
