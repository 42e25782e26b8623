"""The lane of one rank's call in a picture: its phases, in the words used for workers, and its faults."""

from __future__ import annotations

from collections.abc import Mapping

from ..inprocess import Call, Phase
from ..inprocess.words import Command, End, Leave
from .lanes import SpanKind

SPANS: Mapping[Phase, SpanKind] = {
    Phase.JOINING: "joining",
    Phase.STARTING: "running",
    Phase.RUNNING: "running",
    Phase.RESERVE: "waiting",
    Phase.SHORT: "held",
    Phase.RETURNED: "barrier",
    Phase.PENDING: "stopping",
    Phase.UNWINDING: "stopping",
    Phase.FINALIZING: "stopping",
    Phase.CHECKING: "stopping",
    Phase.COMPLETING: "barrier",
    Phase.LEAVING: "leaving",
    Phase.ENDED: "ended",
}


def about(call: Call) -> tuple[SpanKind, str]:
    return SPANS[call.phase], "" if call.round is None else f"iteration {call.round}"


def fault(command: Command) -> str:
    """Return the fault that this command reports; an empty text if it reports none."""
    match command:
        case End(cause=cause):
            return cause.value
        case Leave():
            return "leaves"
        case _:
            return ""
