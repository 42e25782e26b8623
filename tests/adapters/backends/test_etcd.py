"""The register on a real etcd: the shared suites."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
from conformance import Clients
from etcds import Cluster, single
from leased import LeasedConformance

from elastic.adapters.backends.access import Access
from elastic.adapters.backends.etcd import EtcdBackend
from elastic.adapters.backends.members import Members
from elastic.adapters.backends.register import prefix_of
from elastic.adapters.backends.wire import Address
from elastic.adapters.clock import SystemClock

PLAIN = Access()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests of this file that leave it whole; each has a run id of its own."""
    with single(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


def addresses(etcd: Cluster) -> list[Address]:
    return [Address(member.place.host, member.place.client_port) for member in etcd.members]


@contextmanager
def clients(etcd: Cluster, run_id: str = "", timeout_s: float = 2.0, access: Access = PLAIN) -> Iterator[Clients]:
    run_id = run_id or uuid4().hex
    with ExitStack() as stack:

        def make() -> EtcdBackend:
            members = Members(addresses(etcd), access, timeout_s, prefix_of(run_id))
            made = EtcdBackend(members, run_id, SystemClock(), 1)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def client(etcd: Cluster) -> Iterator[Clients]:
    with clients(etcd) as make:
        yield make


class TestEtcd(LeasedConformance):
    @pytest.fixture
    def client(self, client: Clients) -> Clients:
        return client
