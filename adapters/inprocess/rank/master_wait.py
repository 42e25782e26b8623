"""The wait of `init_process_group` for the store of rank 0, which this module does in Python.

torch's client of a TCPStore takes a signal for a failed try to connect. It pauses for longer after each, up to half an hour
in all, and never lets the signal's handler run. A rank that waits there for a rank 0 that has failed could not be called
back, and would be killed at `unwind_timeout`. So a rank waits in Python until somebody listens at MASTER_PORT. Then torch
connects.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

SCHEME = "env"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.05
TRY_S = 1.0
"""The longest try to connect. A host that answers nothing is tried again."""


def wait_in_python() -> None:
    """Let torch's rendezvous by environment variables wait here first, if it is imported. Idempotent."""
    module: Any = sys.modules.get("torch.distributed.rendezvous")
    handlers = getattr(module, "_rendezvous_handlers", {})
    torchs = handlers.get(SCHEME)
    if torchs is not None and not isinstance(torchs, Waiting):
        handlers[SCHEME] = Waiting(torchs)


class Waiting:
    """torch's handler of `env://`, which begins when rank 0 serves its store."""

    def __init__(self, torchs: Callable[..., Iterator[Any]]) -> None:
        self._torchs = torchs

    def __call__(self, url: str, timeout: timedelta | None = None, **given: Any) -> Iterator[Any]:
        if timeout is not None:
            given["timeout"] = timeout
        host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
        if host and port.isdecimal() and os.environ.get("RANK") != "0":
            await_listener(host, int(port), timeout.total_seconds() if timeout else None)
        yield from self._torchs(url, **given)


def await_listener(host: str, port: int, span_s: float | None) -> None:
    """Wait until somebody listens there, or until `span_s` is over: then torch says what is wrong."""
    ends_at, pause_s = None if span_s is None else time.monotonic() + span_s, FIRST_PAUSE_S
    while ends_at is None or time.monotonic() < ends_at:
        with suppress(OSError):
            socket.create_connection((host, port), TRY_S).close()
            return
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
