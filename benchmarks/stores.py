"""The stores of a benchmark, each in processes of its own: clients for a fleet of agents, and bare ones beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_threads import TIMEOUT_S, BareClient
from attrs import frozen

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.etcd.access import Access
from elastic.adapters.store.etcd.etcd_register import EtcdBackend
from elastic.adapters.store.etcd.members import OPTIONS, Members
from elastic.adapters.store.etcd.rpc import grpc, method, rpc, stream
from elastic.adapters.store.etcd.run_keys import prefix_of
from elastic.adapters.store.port import Backend
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address, WireClient
from elastic.core.rendezvous import Settings
from elastic.core.rendezvous.codec import BYTES_MAX

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
import etcds  # the tests' members: started, waited for and ended as there

ANSWER_S = 5.0
PAYLOAD = b"x" * 100


@frozen
class Store:
    """One that runs. A client of each kind has connections of its own."""

    addresses: Sequence[Address]
    pids: Sequence[int]
    client: Callable[[str], Backend]
    """For an agent of this run."""
    bare: Callable[[str], BareClient]
    """For keys that begin so."""

    @property
    def address(self) -> Address:
        return self.addresses[0]


@contextmanager
def tcpstore() -> Iterator[Store]:
    """torch's, in a process that does nothing else."""
    host, address = serve(Address("localhost", 0), True)
    assert host
    try:
        BareTCPStore(address)  # the helper imports torch first
        yield Store(
            [address],
            [host.pid],
            lambda run_id: TCPStoreBackend(address, run_id, SystemClock()),
            lambda prefix: BareTCPStore(address),
        )
    finally:
        host.close()


@contextmanager
def etcd_cluster(members: int) -> Iterator[etcds.Cluster]:
    """Of so many members, with their data in memory where the machine has a place for it."""
    with TemporaryDirectory() as folder, etcds.cluster(Path(folder), members) as cluster:
        yield cluster


@contextmanager
def etcd(members: int) -> Iterator[Store]:
    with etcd_cluster(members) as cluster:
        addresses = [Address(each.place.host, each.place.client_port) for each in cluster.members]

        def client(run_id: str) -> Backend:
            joined = Members(addresses, Access(), ANSWER_S, prefix_of(run_id))
            return EtcdBackend(joined, run_id, SystemClock(), round(Settings().ttl))

        pids = [each.process.pid for each in cluster.members if each.process]
        yield Store(addresses, pids, client, lambda prefix: BareEtcd(addresses[0], prefix))


class BareTCPStore:
    """Our wire client of a TCPStore."""

    def __init__(self, address: Address) -> None:
        self._client = WireClient(address, TIMEOUT_S, BYTES_MAX)
        self._client.greet()

    def put(self, key: str) -> None:
        self._client.set(key, PAYLOAD)

    def wait(self, keys: Sequence[str]) -> None:
        self._client.wait(keys, None)


class BareEtcd:
    """A channel of its own, and one watch on all keys that begin so."""

    def __init__(self, address: Address, prefix: str) -> None:
        channel = grpc.insecure_channel(str(address), (*OPTIONS, ("grpc.use_local_subchannel_pool", 1)))
        self._put, self._seen = method(channel, "KV", "Put"), set[str]()
        end = f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}"
        create = rpc.WatchCreateRequest(key=prefix.encode(), range_end=end.encode())
        self._changes = stream(channel, "Watch", "Watch")(rpc.WatchRequest(create_request=create))
        next(self._changes)

    def put(self, key: str) -> None:
        with _ended():
            self._put(rpc.PutRequest(key=key.encode(), value=PAYLOAD))

    def wait(self, keys: Sequence[str]) -> None:
        with _ended():
            while not self._seen.issuperset(keys):
                self._seen.update(event.kv.key.decode() for event in next(self._changes).events)


@contextmanager
def _ended() -> Iterator[None]:
    """As a socket tells it."""
    try:
        yield
    except grpc.RpcError as error:
        raise OSError(str(error.code())) from error
