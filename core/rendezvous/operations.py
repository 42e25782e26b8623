"""The beginning of an operation: its handler, and the deadline that the settings give it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..world import Ending, Generation, Why
from .actions import Drain
from .context import Handler, Operation
from .handlers import close, drain, join, leave, linger, watch
from .settings import Settings

LINGER_S = 15.0
"""How long a node that knows the verdict waits to see it in the store."""


def operation(
    handler: Handler,
    settings: Settings,
    now: float,
    jitter: float = 0.0,
    why: Why = Why.ASKED,
    ending: Ending = Ending.CANCELLED,
    holds_back: bool = False,
    wanted: Drain | None = None,
    forced: bool = False,
    alive: Generation | None = None,
    is_open: bool = False,
) -> Operation:
    """Return an operation that begins now.

    An operation has a deadline if other nodes wait for it, or if it ends a node. The others wait for the register without
    limit, because giving up gains nothing. A node that cannot start its workers waits for the store as one that joins.
    """
    spans: Mapping[Handler, float] = {
        join: settings.join_timeout,
        leave: settings.leave_timeout,
        close: settings.join_timeout if why is Why.CANNOT_START else settings.close_timeout,
        drain: settings.close_timeout,
        watch: settings.barrier_timeout,
        linger: LINGER_S,
    }
    deadline = now + spans.get(handler, math.inf)
    return Operation(handler, now, deadline, jitter, why, ending, wanted, forced, holds_back, alive, is_open)
