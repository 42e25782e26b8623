"""The memory backend passes the suite that every backend passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance import Clients, Conformance

from elastic.adapters.backends.memory import MemoryBackend, MemoryStore
from elastic.adapters.clock import SystemClock


class TestMemory(Conformance):
    @pytest.fixture
    def client(self) -> Iterator[Clients]:
        store = MemoryStore()
        clients: list[MemoryBackend] = []

        def make() -> MemoryBackend:
            clients.append(MemoryBackend(store, SystemClock()))
            return clients[-1]

        yield make
        for client in clients:
            client.close()
