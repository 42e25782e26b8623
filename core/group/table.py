"""The moves that a group may make, as data: (phase, event) -> the phases that may follow.

An event that is not listed for a phase changes no phase; the group may remember it. `transition` decides when each move is
made, and a test holds it to this table. `diagram` draws the picture in docs/protocol.md from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..diagram import drawn
from .state import (
    Beaten,
    Checked,
    Closed,
    Elapsed,
    Event,
    Exited,
    Gone,
    Noticed,
    Over,
    Phase,
    Raised,
    Ready,
    ReadyToLeave,
    Reaped,
    Refused,
    Signalled,
    Unstartable,
)

P = Phase

MOVES: Mapping[tuple[Phase, type[Event]], tuple[Phase, ...]] = {
    (P.CHECKING, Checked): (P.JOINING, P.LEAVING),
    (P.CHECKING, Over): (P.JOINING,),
    (P.CHECKING, Closed): (P.ENDED,),
    (P.CHECKING, Refused): (P.ENDED,),
    (P.CHECKING, Signalled): (P.LEAVING,),
    (P.CHECKING, Noticed): (P.LEAVING,),
    (P.JOINING, Ready): (P.HELD,),
    (P.JOINING, Unstartable): (P.LEAVING,),
    (P.JOINING, Closed): (P.ENDED,),
    (P.JOINING, Refused): (P.ENDED,),
    (P.JOINING, Signalled): (P.LEAVING,),
    (P.JOINING, Noticed): (P.LEAVING,),
    (P.HELD, Beaten): (P.RUNNING, P.JOINING),
    (P.HELD, Over): (P.JOINING,),
    (P.HELD, Elapsed): (P.ENDED,),
    (P.HELD, Closed): (P.ENDED,),
    (P.HELD, Refused): (P.ENDED,),
    (P.HELD, Signalled): (P.LEAVING,),
    (P.HELD, Noticed): (P.LEAVING,),
    (P.RUNNING, Exited): (P.BARRIER, P.STOPPING, P.LEAVING),
    (P.RUNNING, Raised): (P.STOPPING,),
    (P.RUNNING, Unstartable): (P.STOPPING, P.LEAVING),
    (P.RUNNING, Over): (P.STOPPING, P.MOVING, P.LEAVING),
    (P.RUNNING, Closed): (P.STOPPING,),
    (P.RUNNING, Refused): (P.STOPPING,),
    (P.RUNNING, Elapsed): (P.STOPPING, P.LEAVING),
    (P.RUNNING, Signalled): (P.LEAVING,),
    (P.RUNNING, Noticed): (P.LEAVING,),
    (P.RUNNING, ReadyToLeave): (P.LEAVING,),
    (P.MOVING, Ready): (P.RUNNING, P.BARRIER, P.JOINING, P.CHECKING, P.STOPPING),
    (P.MOVING, Over): (P.STOPPING, P.JOINING),
    (P.MOVING, Unstartable): (P.LEAVING,),
    (P.MOVING, Closed): (P.STOPPING, P.ENDED),
    (P.MOVING, Refused): (P.STOPPING, P.ENDED),
    (P.MOVING, Elapsed): (P.STOPPING,),
    (P.MOVING, Signalled): (P.LEAVING,),
    (P.MOVING, Noticed): (P.LEAVING,),
    (P.STOPPING, Reaped): (P.JOINING, P.CHECKING, P.ENDED, P.LEAVING),
    (P.STOPPING, Over): (P.JOINING, P.LEAVING),
    (P.STOPPING, Elapsed): (P.JOINING, P.LEAVING),
    (P.STOPPING, Closed): (P.ENDED,),
    (P.STOPPING, Refused): (P.ENDED,),
    (P.STOPPING, Signalled): (P.LEAVING,),
    (P.STOPPING, Noticed): (P.LEAVING,),
    (P.BARRIER, Over): (P.JOINING, P.MOVING, P.LEAVING),
    (P.BARRIER, Closed): (P.ENDED,),
    (P.BARRIER, Refused): (P.ENDED,),
    (P.BARRIER, Elapsed): (P.LEAVING, P.JOINING, P.CHECKING),
    (P.BARRIER, Signalled): (P.LEAVING,),
    (P.BARRIER, Noticed): (P.LEAVING,),
    (P.LEAVING, Reaped): (P.ENDED,),
    (P.LEAVING, Gone): (P.ENDED,),
    (P.LEAVING, Closed): (P.ENDED,),
    (P.LEAVING, Elapsed): (P.ENDED,),
    (P.LEAVING, Refused): (P.ENDED,),
    (P.LEAVING, Signalled): (P.ENDED,),
}


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    return drawn(MOVES, P.JOINING, P.ENDED)
