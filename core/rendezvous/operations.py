"""What a node can be about, and for how long it may be: an operation from its handler and the settings."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..world import Ending, Why
from .context import Handler, Operation
from .handlers import close, join, leave, linger, watch
from .settings import Settings

LINGER_S = 15.0
"""How long who knows the verdict waits to see that the store knows it."""


def operation(
    handler: Handler,
    settings: Settings,
    now: float,
    jitter: float = 0.0,
    why: Why = Why.ASKED,
    ending: Ending = Ending.CANCELLED,
) -> Operation:
    """Begin an operation now. Those for which others wait, or which end a node, have deadlines; the rest wait for the
    register as long as it takes, because nothing is gained by giving up."""
    spans: Mapping[Handler, float] = {
        join: settings.join_timeout,
        leave: settings.leave_timeout,
        close: settings.close_timeout,
        watch: settings.barrier_timeout,
        linger: LINGER_S,
    }
    return Operation(handler, now, now + spans.get(handler, math.inf), jitter, why, ending)
