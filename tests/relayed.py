"""Clients of a relay, as a worker has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.port import Backend
from elastic.adapters.store.relay.relay_backend import RelayBackend
from elastic.adapters.store.relay.relay_server import Relay


@contextmanager
def clients(relay: Relay, space: str = "one") -> Iterator[Callable[[], Backend]]:
    """Yield what makes clients of this space. They are closed at the end."""
    with ExitStack() as stack:

        def make() -> Backend:
            made = RelayBackend(relay.path, space, SystemClock())
            stack.callback(made.close)
            return made

        yield make
