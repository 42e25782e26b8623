"""Clients of a real etcd, as an agent makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from certificates import Authority, Certificate
from etcds import Cluster

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.etcd.access import Access
from elastic.adapters.store.etcd.etcd_register import KEPT_S, EtcdBackend
from elastic.adapters.store.etcd.members import Members
from elastic.adapters.store.etcd.run_keys import prefix_of
from elastic.adapters.store.tcpstore.wire import Address

TIMEOUT_S = 1.0
"""How long a member may take to answer who asks again after that."""
LEASE_S = 2
"""Of what a test has come to an end by itself."""
PATIENT_S = 60
"""How long a member may take to answer, and a heartbeat stands, where a machine that stands still for some seconds is to
change nothing."""
PLAIN = Access()

Etcds = Callable[[], EtcdBackend]


def addresses(etcd: Cluster) -> list[Address]:
    return [Address(member.place.host, member.place.client_port) for member in etcd.members]


def made(
    those: list[Address],
    run_id: str,
    access: Access = PLAIN,
    timeout_s: float = TIMEOUT_S,
    kept_s: int = KEPT_S,
    lease_s: int = PATIENT_S,
) -> EtcdBackend:
    """One that shares nothing with any other."""
    members = Members(those, access, timeout_s, prefix_of(run_id))
    return EtcdBackend(members, run_id, SystemClock(), lease_s, kept_s=kept_s)


@contextmanager
def clients(
    etcd: Cluster | list[Address],
    run_id: str = "",
    access: Access = PLAIN,
    timeout_s: float = PATIENT_S,
    kept_s: int = KEPT_S,
    lease_s: int = PATIENT_S,
) -> Iterator[Etcds]:
    """Makes clients of one run, and closes them."""
    run_id = run_id or uuid4().hex
    those = addresses(etcd) if isinstance(etcd, Cluster) else etcd
    with ExitStack() as stack:

        def make() -> EtcdBackend:
            client = made(those, run_id, access, timeout_s, kept_s, lease_s)
            stack.callback(client.close)
            return client

        yield make


def access(authority: Authority, own: Certificate | None = None, ca: Path | None = None) -> Access:
    """To members of this authority, with a certificate or none."""
    cert, key = (str(own.certificate), str(own.key)) if own else (None, None)
    return Access(True, str(ca or authority.ca), cert, key)
