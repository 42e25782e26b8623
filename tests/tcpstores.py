"""Real TCPStores for the tests of a backend: clients of one run, and somebody else at the same store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from uuid import uuid4

from conformance import ANSWER_S, Clients
from ports import reserved

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.tcpstore.seal import UNSEALED, Seal
from elastic.adapters.store.tcpstore.serving import StoreHost, serve
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address, WireClient
from elastic.core.rendezvous import codec

TIMEOUT_S = 0.5
"""How long an answer may take where a test has the store say nothing. Everywhere else it takes what a busy machine takes."""

Store = tuple[StoreHost, Address]


@contextmanager
def clients(
    address: Address, run_id: str = "", timeout_s: float = ANSWER_S, seal: Seal = UNSEALED
) -> Iterator[Clients]:
    """Clients of one run; closed at the end."""
    run_id = run_id or uuid4().hex
    with ExitStack() as stack:

        def make() -> TCPStoreBackend:
            made = TCPStoreBackend(address, run_id, SystemClock(), timeout_s=timeout_s, seal=seal)
            stack.callback(made.close)
            return made

        yield make


@contextmanager
def own_store(port: int | None = None) -> Iterator[Store]:
    """A store for one test alone, at a port that stays nobody else's when the store is gone; or at one that is reserved."""
    with reserved() if port is None else nullcontext(port) as free:
        host, address = serve(Address("127.0.0.1", free), True)
        assert host
        try:
            with talking(address):
                yield host, address
        finally:
            host.close()


@contextmanager
def talking(address: Address) -> Iterator[WireClient]:
    """Somebody else at the same store, who may do what we never would. Waits for a store that is still starting."""
    with WireClient(address, ANSWER_S, codec.BYTES_MAX) as client:
        client.greet()
        yield client


def plant(other: WireClient, key: str, value: bytes) -> None:
    """Set, and know that it is set."""
    other.set(key, value)
    assert other.get(key) == (value,)


WHOLE_TORCH = """
import sys
sys.path.remove({folder!r})
del sys.modules["torch"]
import torch
"""


def half_torch(folder: Path, library: str) -> str:
    """Put before the installed torch a torch whose library is this program; its whole is the installed one. Returns the
    value of PYTHONPATH that does it."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(WHOLE_TORCH.format(folder=str(folder)))
    (folder / "torch" / "_C.py").write_text(library)
    return str(folder)
