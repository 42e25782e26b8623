"""A store server: a TCPStore that belongs to no agent and is served until a signal comes, so that it outlives all agents.

As in an agent, many post and one decides. The signals and the thread that watches the helper only post into the inbox. A
helper that dies is replaced, as an agent's is.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import assert_never

from ....core.values import frozen
from ...clock import SystemClock
from ...signals import signals_as_events, taken
from .helper_watch import Watching, watch_alone
from .wire import Address

_STILL_S = 10.0
"""A helper that does not answer for this long is killed: two TTLs of the agents, as they are if nobody names another."""


@frozen
class Signalled:
    """A signal asked us to end."""

    signum: int


@frozen
class GivenUp:
    """No helper can be started any more."""


@frozen
class _Served:
    """The store answers."""


def serve_until_signalled(
    address: Address,
    signals: Iterable[signal.Signals],
    ready: Callable[[Address], None],
    warn: Callable[[str], None],
    end: Callable[[int], str],
) -> Signalled | GivenUp:
    """Serve a store at `address` until one of `signals` comes, or its helper can be started no more. Raises CannotServe,
    and OSError if this host has no thread or descriptor left.

    `ready` is called once with the real address, when the store answers. `warn` is called with a sentence for each death of
    a helper, from a thread; `end` puts its exit code into words. No process is left afterwards."""
    inbox: SimpleQueue[Signalled | GivenUp | _Served] = SimpleQueue()
    watching = Watching(
        SystemClock(),
        _STILL_S,
        warn,
        end,
        served=lambda: inbox.put(_Served()),
        gave_up=lambda: inbox.put(GivenUp()),
    )
    is_ready = False
    with signals_as_events(signals, lambda signum, frame: inbox.put(Signalled(signum))) as blocked:
        if blocked:
            warn(blocked)
        watch, served = watch_alone(address, watching)
        try:
            while True:
                match taken(inbox):
                    case _Served():
                        if not is_ready:
                            ready(served)
                        is_ready = True
                    case Signalled() | GivenUp() as over:
                        return over
                    case other:
                        assert_never(other)
        finally:
            watch.close()
