"""A store that a test serves, and that can lose its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define
from ports import reserved

from elastic.adapters.store.tcpstore.serving import StoreHost, serve
from elastic.adapters.store.tcpstore.wire import Address


@define
class Served:
    """A store that can lose its memory: its process is killed, and another one serves at the same address."""

    host: StoreHost
    address: Address

    def closes(self) -> None:
        self.host.close()

    def serves(self) -> None:
        host, _ = serve(self.address, True)
        assert host
        self.host = host

    def is_lost(self) -> None:
        self.closes()
        self.serves()


@contextmanager
def served() -> Iterator[Served]:
    with reserved() as port:
        host, address = serve(Address("localhost", port), True)
        assert host
        store = Served(host, address)
        try:
            yield store
        finally:
            store.closes()
