"""A watch on one key of an etcd: the changes that one member tells, read by its own thread.

A watch is silent when nothing changes, but also when its member is dead, paused or cut off. So its reader reads the key from
time to time, and opens another stream when this one has missed a change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ....core.values import frozen
from ... import threads
from ..tcpstore.wire import Address
from .members import Stubs
from .rpc import grpc, rpc

_CLOSE_TIMEOUT_S = 5.0


@frozen
class Change:
    """The latest write of the key."""

    kv: Any
    deleted: bool
    cluster: int
    """The cluster of the member that says so."""


@frozen
class Ended:
    """The stream is over."""

    reason: str


class WatchStream:
    """A stream of changes, closed by the client that opened it."""

    def __init__(
        self,
        stubs: Stubs,
        metadata: tuple[tuple[str, str], ...],
        key: bytes,
        revision: int,
        failed: Callable[[Address], None],
    ) -> None:
        """Open a stream of the changes of this key from this revision on. Raises NoThread. The stream's thread calls
        `failed` when the member ends the stream."""
        self.address: Address = stubs.address
        self.told = revision - 1
        """The revision of the last change that came; at first the one before the stream's beginning."""
        self._failed = failed
        self._news: SimpleQueue[Change | Ended] = SimpleQueue()
        self._over = threading.Event()
        create = rpc.WatchRequest(create_request=rpc.WatchCreateRequest(key=key, start_revision=revision))
        self._call = stubs.watch(create, metadata=metadata)
        self._thread = threading.Thread(target=self._read, name="elastic-stream", daemon=True)
        try:
            threads.start(self._thread)
        except threads.NoThread:
            self._call.cancel()
            raise

    def next(self, timeout_s: float) -> Change | Ended | None:
        """Return the latest change, waiting at most `timeout_s` for one. Earlier changes are dropped."""
        try:
            news = self._news.get(timeout=max(timeout_s, 0.0))
            while isinstance(news, Change) and not self._news.empty():
                news = self._news.get_nowait()
        except Empty:
            return None
        return news

    def wake(self) -> None:
        """Make `next` in another thread return Ended."""
        self._news.put(Ended("closed"))

    def close(self) -> None:
        self._over.set()
        self._call.cancel()
        self._thread.join(_CLOSE_TIMEOUT_S)

    def _read(self) -> None:
        try:
            for answer in self._call:
                if answer.canceled:
                    self._news.put(Ended(answer.cancel_reason or f"compacted at {answer.compact_revision}"))
                    break
                if answer.events:
                    event = answer.events[-1]
                    self.told = event.kv.mod_revision
                    self._news.put(Change(event.kv, bool(event.type), answer.header.cluster_id))
        except grpc.RpcError as error:
            self._ends(str(error.code()))
        else:
            self._ends("the member ended it")

    def _ends(self, reason: str) -> None:
        if not self._over.is_set():
            self._failed(self.address)
        self._over.set()
        self._news.put(Ended(reason))
