"""A TCPStore's table in this process's memory, for a job of one node whose store can no longer be served.

Such a job meets nobody, so it needs no store to end well. When its agent has given up the helper, its clients ask this table
instead. It begins empty, and the agent writes the register that it remembers into it, as into any store that was lost.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from .wire import Closed, WireClient


class Table:
    """The keys and values, for several threads."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.changed = threading.Condition()


class TableClient(WireClient):
    """A client of a table, with the answers of a TCPStore. It never breaks, but for `abort`."""

    def __init__(self, table: Table) -> None:
        self._values = table.values
        self._changed = table.changed
        self._is_aborted = False

    def greet(self) -> None:
        """Do nothing: a table is there."""

    def set(self, key: str, value: bytes) -> None:
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def compare_set(self, key: str, expected: bytes, value: bytes) -> bytes:
        with self._changed:
            if self._values.get(key, b"") == expected:
                self.set(key, value)
            return self._values.get(key, expected)

    def compare_set_and_get(self, key: str, expected: bytes, value: bytes, other: str) -> tuple[bytes, bytes]:
        with self._changed:
            return self.compare_set(key, expected, value), self.get(other)[0]

    def add(self, key: str, amount: int) -> int:
        with self._changed:
            total = int(self._values.get(key, b"0")) + amount
            self.set(key, b"%d" % total)
            return total

    def get(self, *keys: str) -> tuple[bytes, ...]:
        with self._changed:
            return tuple(self._values.get(key, b"") for key in keys)

    def delete(self, *keys: str) -> None:
        with self._changed:
            for key in keys:
                self._values.pop(key, None)

    def wait(self, keys: Sequence[str], timeout_s: float | None) -> bool:
        with self._changed:
            came = self._changed.wait_for(
                lambda: self._is_aborted or all(key in self._values for key in keys), timeout_s
            )
            if self._is_aborted:
                raise Closed("this client is closed")
            return came

    def abort(self) -> None:
        with self._changed:
            self._is_aborted = True
            self._changed.notify_all()

    def close(self) -> None:
        """Do nothing: it holds no connection."""
