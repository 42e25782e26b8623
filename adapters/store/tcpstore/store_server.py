"""A store server: a TCPStore that belongs to no agent and is served until a signal comes, so that it outlives all agents.

As in an agent, many post and one decides. The signals, the thread that waits for the first answer, and the thread that waits
for the helper's death only post into the inbox.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import assert_never

from attrs import frozen

from ... import threads
from ...signals import signals_as_events
from .serving import serve_alone
from .wire import Address, Unsent, WireClient

_START_TIMEOUT_S = 3_600.0
"""How long the helper may take to import torch, from any disk. Nothing is printed for a store that takes longer."""


@frozen
class Signalled:
    """A signal asked us to end."""

    signum: int


@frozen
class Ended:
    """The helper ended by itself, with this exit code (negative: by a signal)."""

    code: int


@frozen
class _Died:
    """The helper is dead and not reaped yet."""


@frozen
class _Answered:
    """The store answers."""


_Inbox = SimpleQueue[Signalled | _Died | _Answered]


def serve_until_signalled(
    address: Address, signals: Iterable[signal.Signals], ready: Callable[[Address], None]
) -> Signalled | Ended:
    """Serve a store at `address` until one of `signals` comes or its helper dies. Raises CannotServe, and OSError
    if this host has no thread or descriptor left.

    `ready` is called with the real address once the store answers. No process is left afterwards."""
    inbox: _Inbox = SimpleQueue()
    with signals_as_events(signals, lambda signum, frame: inbox.put(Signalled(signum))):
        host, served = serve_alone(address)
        try:
            for told_by, given in ((_tell_death, os.pidfd_open(host.pid)), (_tell_answer, served)):
                threads.start(threading.Thread(target=told_by, args=(given, inbox), name="elastic-store", daemon=True))
            while True:
                match inbox.get():
                    case _Answered():
                        ready(served)
                    case _Died():
                        return Ended(host.wait())
                    case Signalled() as asked:
                        return asked
                    case other:
                        assert_never(other)
        finally:
            host.close()


def _tell_death(pidfd: int, inbox: _Inbox) -> None:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.poll()
    os.close(pidfd)
    inbox.put(_Died())


def _tell_answer(address: Address, inbox: _Inbox) -> None:
    """Wait for the store's first answer. The kernel takes connections from the first moment on; the store answers later."""
    try:
        with WireClient(address, _START_TIMEOUT_S, 0) as client:
            client.greet()
    except Unsent:
        return  # it died, and that is told
    inbox.put(_Answered())
