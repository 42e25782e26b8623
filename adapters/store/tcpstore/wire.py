"""The protocol of torch's TCPStore over a socket: the few requests that a register needs.

Why not torch's own client: it takes most of a second and 200 MB to import, nobody can end a wait in it, it reads a value of
any size, and a time-out writes C++ warnings to the terminal. The server is torch's. Its protocol is not documented; these
requests were tried against torch 2.13. A client first makes the server echo a number, so a server that speaks otherwise is
refused before anything is written.

A request is a byte for its kind, then its arguments: strings as length (8 bytes, little-endian) and bytes, numbers as 8
bytes. Keys begin with "/", as torch's client writes them.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Iterator, Sequence
from types import TracebackType

from ....core.values import frozen
from ...clock import SystemClock, poll_ms

VALIDATE, SET, COMPARE_SET, GET, ADD, CHECK, WAIT, GETNUMKEYS, DELETE, APPEND, MULTI_GET, MULTI_SET, CANCEL, PING = (
    range(14)
)
LIST_KEYS = 17
RUNS_THERE = "it must run there, and this host must be able to reach that port"
"""The advice where a store does not answer."""
MAGIC = 0x3C85F7CE
CANCELLED = b"\x01"
_PIECE = 1 << 16
"""Bytes that are read at once. An answer has many short parts, and each system call costs more than the bytes."""


class Unsent(OSError):
    """The server was not reached, so it was asked nothing."""


class Broken(OSError):
    """The connection ended, or the answer did not come in time."""


class Late(Broken):
    """The answer has not come as a whole in time."""


class Closed(Broken):
    """The server closed the connection."""


class Doubtful(Broken):
    """The connection broke during a write, which may have been made."""


class Oversized(ValueError):
    """A value is larger than the bound, and was not read."""


@frozen
class Address:
    """The address at which a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class WireClient:
    """A connection, for one thread. After `Broken` or `Oversized` it is useless."""

    def __init__(self, address: Address, timeout_s: float, bytes_max: int) -> None:
        """Connect. Raises Unsent if nobody listens. Call `greet` first."""
        self._bytes_max = bytes_max
        self._unread = bytearray()
        """Bytes that have come and are not read yet."""
        self._until: float | None = None
        """When the answer must have come as a whole; None if each part of it has the socket's time-out."""
        try:
            self._socket = socket.create_connection((address.host, address.port), timeout=timeout_s)
        except OSError as error:
            raise Unsent(f"{error.strerror or error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def greet(self) -> None:
        """Check that a TCPStore answers. Raises Unsent if nothing answers, or something else does."""
        nonce = os.urandom(4)
        try:
            self._send(struct.pack("<BI", VALIDATE, MAGIC) + struct.pack("<B", PING) + nonce)
            echo = self._read(4)
        except Broken as error:
            raise Unsent(f"{error}; {_owner(error)} has that port") from error
        if echo != nonce:
            raise Unsent("what listens there is no TCPStore: it does not echo what it is sent")

    def set(self, key: str, value: bytes) -> None:
        self._send(bytes([SET]) + _text(key) + _bytes(value))

    def compare_set(self, key: str, expected: bytes, value: bytes) -> bytes:
        """Set the value if the present one is `expected` (b"": none). Returns the value afterwards, either way."""
        try:
            self._send(bytes([COMPARE_SET]) + _text(key) + _bytes(expected) + _bytes(value))
            return self._read_bytes()
        except Broken as error:
            raise Doubtful(str(error)) from error

    def compare_set_and_get(self, key: str, expected: bytes, value: bytes, other: str) -> tuple[bytes, bytes]:
        """Do the same, and read another key right after it. Returns both values."""
        try:
            write = bytes([COMPARE_SET]) + _text(key) + _bytes(expected) + _bytes(value)
            self._send(write + bytes([MULTI_GET]) + _keys([other]))
            return self._read_bytes(), self._read_bytes()
        except Broken as error:
            raise Doubtful(str(error)) from error

    def add(self, key: str, amount: int) -> int:
        """Add to a counter. Returns the sum."""
        self._send(bytes([ADD]) + _text(key) + struct.pack("<q", amount))
        return int(struct.unpack("<q", self._read(8))[0])

    def get(self, *keys: str) -> tuple[bytes, ...]:
        """Return the values of these keys, b"" for a key that has none."""
        self._send(bytes([MULTI_GET]) + _keys(keys))
        return tuple(self._read_bytes() for _ in keys)

    def delete(self, *keys: str) -> None:
        self._send(b"".join(bytes([DELETE]) + _text(key) for key in keys))
        self._read(8 * len(keys))

    def all_keys(self, longest: int, within_s: float) -> Iterator[str | None]:
        """Yield the keys that have a value and at most this many bytes, in no order; None at the end if not all came within
        this time. This connection is useless afterwards. Raises Closed where the server's torch is too old to list them."""
        self._until = SystemClock().now() + within_s
        self._send(bytes([LIST_KEYS]))
        try:
            (count,) = struct.unpack("<Q", self._read(8))
            for _ in range(count):
                (size,) = struct.unpack("<Q", self._read(8))
                if size <= longest:
                    yield self._read(size).decode(errors="replace").removeprefix("/")
                else:
                    self._pass_over(size)
        except Late:
            yield None

    def wait(self, keys: Sequence[str], timeout_s: float | None) -> bool:
        """Wait until all of these keys have a value. False after `timeout_s`."""
        self._send(bytes([WAIT]) + _keys(keys))
        if self._unread or self._hears_within(timeout_s):
            self._read(1)
            return True
        self._send(bytes([CANCEL]))
        # a byte comes before it if the keys came in this very moment
        if self._read(1) != CANCELLED and self._read(1) != CANCELLED:
            raise Broken("the answer is no TCPStore's")
        return False

    def abort(self) -> None:
        """End what is under way as Broken, from another thread."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it had ended already

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _hears_within(self, timeout_s: float | None) -> bool:
        """Return True if bytes come within `timeout_s`. By poll: `select` takes no descriptor above 1,023."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else poll_ms(timeout_s)))

    def _send(self, request: bytes) -> None:
        try:
            self._socket.sendall(request)
        except ConnectionError as error:
            raise Closed(error.strerror or str(error)) from error
        except OSError as error:
            raise Broken(error.strerror or str(error)) from error

    def _read(self, size: int) -> bytes:
        unread = self._unread
        while len(unread) < size:
            self._bound_wait()
            try:
                piece = self._socket.recv(max(size - len(unread), _PIECE))
            except TimeoutError as error:
                raise (Broken if self._until is None else Late)(str(error)) from error
            except ConnectionError as error:
                raise Closed(error.strerror or str(error)) from error
            except OSError as error:
                raise Broken(error.strerror or str(error)) from error
            if not piece:
                raise Closed("the server closed the connection")
            unread += piece
        data = bytes(unread[:size])
        del unread[:size]
        return data

    def _bound_wait(self) -> None:
        """Wait no longer for the next part than for the answer as a whole. Raises Late."""
        if self._until is not None:
            if (left_s := self._until - SystemClock().now()) <= 0:
                raise Late("the answer takes too long")
            self._socket.settimeout(left_s)

    def _pass_over(self, size: int) -> None:
        while size > 0:
            size -= len(self._read(min(size, _PIECE)))

    def _read_bytes(self) -> bytes:
        (size,) = struct.unpack("<Q", self._read(8))
        if size > self._bytes_max:
            raise Oversized(f"{size} bytes where at most {self._bytes_max} may be")
        return self._read(size)


def starts(address: Address, timeout_s: float) -> bool:
    """Return True if something listens there that has not answered after `timeout_s`, as a store that is starting."""
    try:
        with WireClient(address, timeout_s, 0) as client:
            client.greet()
    except Unsent as error:
        return isinstance(error.__cause__, Broken) and not isinstance(error.__cause__, Closed)
    return False


def _owner(error: Broken) -> str:
    """Return who may have a port where the greeting ended so. torch's server closes a connection for which it has no
    descriptor left."""
    if isinstance(error, Closed):
        return "a store that has no descriptor left, or another program,"
    return "a store that is starting or hangs, or another program,"


def _bytes(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def _text(key: str) -> bytes:
    return _bytes(f"/{key}".encode())


def _keys(keys: Sequence[str]) -> bytes:
    return struct.pack("<Q", len(keys)) + b"".join(map(_text, keys))
