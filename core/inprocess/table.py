"""The moves that a call may make, as data: (phase, event) -> the phases that may follow.

An event that is not listed for a phase changes no phase; the call may remember it. `transition` decides when each move is
made, and a test holds it to this table. `diagram` draws the picture in docs/protocol.md from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..diagram import drawn
from .state import Phase
from .words import (
    AbortEnded,
    Closed,
    Elapsed,
    Event,
    GateRead,
    Interrupted,
    Left,
    Over,
    Ready,
    Refused,
    SpanEnded,
    Terminated,
)

P = Phase

MOVES: Mapping[tuple[Phase, type[Event]], tuple[Phase, ...]] = {
    (P.JOINING, Ready): (P.STARTING, P.SHORT, P.LEAVING),
    (P.JOINING, Closed): (P.LEAVING, P.ENDED),
    (P.JOINING, Refused): (P.LEAVING,),
    (P.JOINING, Interrupted): (P.LEAVING,),
    (P.JOINING, Terminated): (P.LEAVING,),
    (P.STARTING, SpanEnded): (P.RUNNING, P.RESERVE, P.UNWINDING),
    (P.STARTING, Over): (P.PENDING,),
    (P.STARTING, Closed): (P.PENDING,),
    (P.STARTING, Elapsed): (P.PENDING,),
    (P.STARTING, Refused): (P.PENDING,),
    (P.STARTING, Interrupted): (P.PENDING,),
    (P.STARTING, Terminated): (P.PENDING,),
    (P.RUNNING, SpanEnded): (P.RETURNED, P.UNWINDING),
    (P.RUNNING, Over): (P.PENDING,),
    (P.RUNNING, Closed): (P.PENDING,),
    (P.RUNNING, Elapsed): (P.PENDING,),
    (P.RUNNING, Refused): (P.PENDING,),
    (P.RUNNING, Interrupted): (P.PENDING,),
    (P.RUNNING, Terminated): (P.PENDING,),
    (P.RESERVE, Over): (P.UNWINDING,),
    (P.RESERVE, Closed): (P.COMPLETING, P.UNWINDING),
    (P.RESERVE, Elapsed): (P.UNWINDING,),
    (P.RESERVE, Refused): (P.UNWINDING,),
    (P.RESERVE, Interrupted): (P.UNWINDING,),
    (P.RESERVE, Terminated): (P.UNWINDING,),
    (P.SHORT, Over): (P.JOINING,),
    (P.SHORT, Closed): (P.LEAVING, P.ENDED),
    (P.SHORT, Elapsed): (P.LEAVING,),
    (P.SHORT, Refused): (P.LEAVING,),
    (P.SHORT, Interrupted): (P.LEAVING,),
    (P.SHORT, Terminated): (P.LEAVING,),
    (P.RETURNED, Over): (P.UNWINDING,),
    (P.RETURNED, Closed): (P.COMPLETING, P.UNWINDING),
    (P.RETURNED, Elapsed): (P.UNWINDING,),
    (P.RETURNED, Refused): (P.UNWINDING,),
    (P.RETURNED, Interrupted): (P.UNWINDING,),
    (P.RETURNED, Terminated): (P.UNWINDING,),
    (P.PENDING, SpanEnded): (P.UNWINDING,),
    (P.PENDING, GateRead): (P.UNWINDING,),
    (P.UNWINDING, SpanEnded): (P.FINALIZING, P.LEAVING, P.ENDED),
    (P.UNWINDING, AbortEnded): (P.FINALIZING, P.LEAVING, P.ENDED),
    (P.UNWINDING, Elapsed): (P.LEAVING, P.ENDED),
    (P.FINALIZING, SpanEnded): (P.CHECKING, P.LEAVING, P.ENDED),
    (P.CHECKING, SpanEnded): (P.JOINING, P.LEAVING, P.ENDED),
    (P.COMPLETING, SpanEnded): (P.ENDED,),
    (P.LEAVING, SpanEnded): (P.ENDED,),
    (P.LEAVING, Left): (P.ENDED,),
    (P.LEAVING, Closed): (P.ENDED,),
    (P.LEAVING, Elapsed): (P.ENDED,),
    (P.LEAVING, Refused): (P.ENDED,),
}


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    return drawn(MOVES, P.JOINING, P.ENDED)
