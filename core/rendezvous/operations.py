"""What a node can be about, and for how long it may be: an operation from its handler and the settings."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..world import Ending, Why
from .context import Handler, Operation
from .handlers import close, join, leave, watch
from .settings import Settings


def operation(
    handler: Handler,
    settings: Settings,
    now: float,
    jitter: float = 0.0,
    why: Why = Why.ASKED,
    ending: Ending = Ending.CANCELLED,
) -> Operation:
    """Begin an operation now. Joining, leaving, closing and the exit barrier have deadlines; the others wait for the
    register as long as it takes, because nothing is gained by giving up."""
    spans: Mapping[Handler, float] = {
        join: settings.join_timeout,
        leave: settings.leave_timeout,
        close: settings.close_timeout,
        watch: settings.barrier_timeout,
    }
    return Operation(handler, now, now + spans.get(handler, math.inf), jitter, why, ending)
