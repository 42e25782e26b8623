"""The memory backend passes the suite that every backend passes, with counters and with leases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conformance import ANSWER_S, AgentConformance, Clients, Conformance
from leased import LeasedConformance

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore


@contextmanager
def clients(store: MemoryStore) -> Iterator[Clients]:
    made: list[MemoryBackend] = []

    def make() -> MemoryBackend:
        made.append(MemoryBackend(store, SystemClock()))
        return made[-1]

    yield make
    for client in made:
        client.close()


class TestMemory(Conformance, AgentConformance):
    @pytest.fixture
    def client(self) -> Iterator[Clients]:
        with clients(MemoryStore()) as make:
            yield make


class TestMemoryWithLeases(LeasedConformance):
    @pytest.fixture
    def client(self) -> Iterator[Clients]:
        with clients(MemoryStore(lease_s=ANSWER_S)) as make:
            yield make

    @pytest.fixture
    def hasty(self) -> Iterator[Clients]:
        with clients(MemoryStore(lease_s=0.5)) as make:
            yield make
