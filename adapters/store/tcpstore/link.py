"""One client's connection to a TCPStore: opened by the first question, opened again after it broke, ended by `close`.

Here the errors of the wire become the errors of the port.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ....core.rendezvous import codec
from ..port import OutcomeUnknown, OutOfReach, Unreadable
from .table import Table, TableClient
from .wire import RUNS_THERE, Address, Broken, Doubtful, Oversized, Unsent, WireClient

_UNKNOWN = "this host does not know that name; correct it, or write an address"


class Link:
    """A connection that opens itself. One thread asks over it; `close` may come from any thread."""

    def __init__(
        self,
        address: Address,
        timeout_s: float,
        not_ours: Callable[[str], Unreadable],
        table: Callable[[], Table | None] = lambda: None,
        remedy: Callable[[], str] = lambda: RUNS_THERE,
    ) -> None:
        """`timeout_s` is how long an answer may take. `not_ours` makes the error for a value that is not a register. `table`
        returns the table that took the store's place, if one did. `remedy` says what helps if there is no answer, or
        raises NotServed."""
        self._address = address
        self._timeout_s = timeout_s
        self._not_ours = not_ours
        self._table = table
        self._remedy = remedy
        self._client: WireClient | None = None
        self._lock = threading.Lock()
        self.closed = False

    @contextmanager
    def asking(self) -> Iterator[WireClient]:
        """Yield an open connection, and raise the wire's errors as errors of the port."""
        try:
            with self._lock:
                try:
                    yield self._connected()
                except (Oversized, Broken, Unsent):
                    self._drop()
                    raise
        except Oversized as error:
            raise self._not_ours(str(error)) from error
        except Doubtful as error:
            raise OutcomeUnknown(f"the store at {self._address} did not say whether it wrote ({error})") from error
        except (Unsent, Broken) as error:
            unknown = isinstance(error.__cause__, socket.gaierror)
            remedy = _UNKNOWN if unknown else self._remedy()
            raise OutOfReach(f"no answer from the store at {self._address} ({error}): {remedy}") from error
        finally:
            if self.closed:
                self._forget()

    def close(self) -> None:
        """End what is under way at once. Idempotent."""
        self.closed = True
        client = self._client
        if client:
            client.abort()
        self._forget()

    def _connected(self) -> WireClient:
        self._refuse_if_closed()
        if not self._client:
            table = self._table()
            self._client = TableClient(table) if table else WireClient(self._address, self._timeout_s, codec.BYTES_MAX)
            self._refuse_if_closed()  # `close` may have come before there was a connection that it could break
            self._client.greet()
        return self._client

    def _refuse_if_closed(self) -> None:
        if self.closed:
            raise Unsent("this client is closed")

    def _forget(self) -> None:
        """Close the connection. If a thread asks something over it now, that thread closes it."""
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _drop(self) -> None:
        if self._client:
            self._client.close()
            self._client = None
