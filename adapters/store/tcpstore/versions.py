"""The versions of a register in a TCPStore, each under a key of its own: find the last one, write the next.

A client begins at the last version that it or one of its clones saw, and reads the next ones, so the head is mostly one
request away and a participant reads each version once. A client that has slept finds marks in place of old versions. It
goes on from the hint, or walks over the marks.

Marks are removed in blocks, or a store would grow for as long as a job restarts. Before a block is removed, the floor is
raised to its last version: the floor names the last version that may be missing. No version up to it counts. So a client
that has slept finds a free key there, and reads right after its write that the write does not count.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import takewhile

from ....core.rendezvous import RendezvousState, Token, codec
from ....core.values import frozen
from ..numerals import number
from ..port import Unreadable
from .keys import Keys
from .seal import Forged, Seal, put, trusted
from .wire import WireClient

_EMPTIED = b"-"
"""The mark that is left of an old version."""
_KEPT = 16
"""How many versions behind the head are kept whole for late readers."""
_BLOCK = 256
"""How many marks are removed at once, and at least kept."""
_AHEAD = 2
"""How many versions ahead a reader looks with its first request. Mostly one has come, or none."""
_STRIDE = 4
"""How many versions ahead it looks with each further request."""


@frozen
class Sight:
    """The last version that was seen in the store instance of this root."""

    root: bytes
    first: RendezvousState
    last: RendezvousState


class Sights:
    """The last sight of several clients of one store. Each begins where any of them has been."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.latest: Sight | None = None
        self._decoding = threading.Lock()
        self._decoded: tuple[bytes, RendezvousState] | None = None

    def decoded(self, data: bytes) -> RendezvousState:
        """Return the state in these bytes. Of clients that read a version at once, one decodes it. Raises Refused."""
        with self._decoding:
            if self._decoded is None or self._decoded[0] != data:
                self._decoded = data, codec.decode(data)
            return self._decoded[1]

    def tell(self, sight: Sight) -> None:
        """Take this sight, unless a later one of the same instance is known."""
        with self._lock:
            latest = self.latest
            if latest is None or latest.root != sight.root or latest.last.version <= sight.last.version:
                self.latest = sight


class Versions:
    """The versions in the store instance that the root names."""

    def __init__(self, keys: Keys, seal: Seal, sights: Sights | None = None) -> None:
        self._keys = keys
        self._seal = seal
        self._sights = sights or Sights()
        self._root = b""
        self._first: RendezvousState | None = None
        self._floor = b""
        """The floor as it was last read."""
        self.seen: RendezvousState | None = None
        """The last version, as of the last look."""

    def head(self, client: WireClient) -> RendezvousState | None:
        """Return the last version, None if there is none. Raises Unreadable."""
        self.look(client)
        return self.seen

    def look(self, client: WireClient, *further: str) -> tuple[bytes, ...]:
        """Find the last version. Return the values of further keys, read with the same request. Raises Unreadable."""
        self._take_over()
        seen = self.seen
        names = self._beside(seen.version) if seen else ()
        root, *values = client.get(self._keys.root, *names, *further)
        beside, found = values[: len(names)], tuple(values[len(names) :])
        if not root:
            self.seen = None
        elif seen is None or root != self._root:
            self._first = first = self._decoded(self._opened(self._keys.root, root), self._keys.root)
            self._root, self.seen = root, self._last(client, first, client.get(*self._beside(first.version)))
            self._tell()
        else:
            self.seen = self._last(client, seen, beside)
            self._tell()
        return found

    def stood(self, token: Token | None) -> bool:
        """Return True if any client has seen this token stand last: who waits for the next one need not look first."""
        self._take_over()
        return self.seen is not None and self.seen.token == token

    def pushed(self, client: WireClient, token: Token) -> RendezvousState | None:
        """Return the last version, after the key of the one that follows this token has come. That version is all that is
        read: its key names the store instance, so the root stands. Raises Unreadable."""
        root = self._root
        self._take_over()
        known = self.seen
        if known is None or self._root != root:
            return self.head(client)
        key = self.next_key(known.token)
        (found,) = client.get(key)
        if found and (data := self._opened(key, found)) != _EMPTIED:
            self.seen = known = self._version(known, known.version + 1, data)
            self._tell()
        return known if known.version > token.version else self.head(client)

    def _take_over(self) -> None:
        """Go on from what any client has seen last."""
        if latest := self._sights.latest:
            self._root, self._first, self.seen = latest.root, latest.first, latest.last

    def _tell(self) -> None:
        """Let the other clients go on from what this one has seen."""
        assert self._first and self.seen
        self._sights.tell(Sight(self._root, self._first, self.seen))

    def write(self, client: WireClient, state: RendezvousState, token: Token | None) -> RendezvousState | None:
        """Write `state` if `token` names the last version. Returns the last version afterwards. Raises Unreadable."""
        # Over a new connection this may be a store that knows nothing of the token's life, where any key is free.
        stands = self.head(client)
        if (stands.token if stands else None) != token:
            return stands
        if token:
            self._tidy(client, token.version)
        key = self.next_key(token)
        data = self._seal.sealed(key, codec.encode(state))
        if not (self._is_next(client, key, data, token.version + 1) if token else self._is_root(client, data, state)):
            return self.head(client)
        self.seen = state
        self._tell()
        return state

    def _is_root(self, client: WireClient, data: bytes, state: RendezvousState) -> bool:
        """Write the root. Returns False if there is another one."""
        if client.compare_set(self._keys.root, b"", data) != data:
            return False
        self._root, self._first, self._floor = data, state, b""
        return True

    def _is_next(self, client: WireClient, key: str, data: bytes, version: int) -> bool:
        """Write this version. Returns False if there is another one, or was: then it was removed, and ours counts for
        nothing."""
        stands, self._floor = client.compare_set_and_get(key, b"", data, self._floor_key)
        if stands == data and self._floor_version() >= version:
            client.delete(key)
            return False
        return stands == data

    def next_key(self, token: Token | None) -> str:
        """Return the key of the version that will follow this one; the root, if there is none yet."""
        return self._version_key(token.version + 1) if token else self._keys.root

    def _last(self, client: WireClient, known: RendezvousState, beside: Sequence[bytes]) -> RendezvousState:
        """Go from a known version to the last one. `beside` holds the floor, and the values that follow the version."""
        while True:
            self._floor, *ahead = beside
            floor = self._floor_version()
            begin = max(known.version, floor)
            version, data = self._walk(client, begin, ahead if begin == known.version else None)
            if data and data != _EMPTIED:
                return self._version(known, version, data)
            if not data and begin == known.version:
                return known
            beside = client.get(*self._beside(known.version))
            if beside[0] == self._floor:  # else marks were removed under way
                raise self._keys.not_ours(f"no version follows {self._version_key(version)}")

    def _walk(self, client: WireClient, version: int, ahead: Sequence[bytes] | None) -> tuple[int, bytes]:
        """Return the last version from this one on, and its value: b"" if none follows."""
        data = b""
        values = client.get(*self._ahead(version, _STRIDE)) if ahead is None else ahead
        while found := _present(values):
            version = version + len(found)
            data = self._opened(self._version_key(version), found[-1])
            if data == _EMPTIED:
                version, data = self._jump(client, version)
            elif len(found) < len(values):
                break
            values = client.get(*self._ahead(version, _STRIDE))
        return version, data

    def _version(self, known: RendezvousState, version: int, data: bytes) -> RendezvousState:
        state = self._decoded(data, key := self._version_key(version))
        if state.version != version or not (state.life == known.life or state.life.epoch > known.life.epoch):
            raise self._keys.not_ours(f"{key} holds {state.token}")
        return state

    def _jump(self, client: WireClient, version: int) -> tuple[int, bytes]:
        """Return the version and value to go on from: the hint's, if it leads further than this mark."""
        key = self._instance_key("head")
        hint = number(trusted(self._seal, key, client.get(key)[0]))
        if hint is None or hint <= version:
            return version, _EMPTIED
        data = client.get(key := self._version_key(hint))[0]
        return (hint, self._opened(key, data)) if data else (version, _EMPTIED)

    def _tidy(self, client: WireClient, head: int) -> None:
        """Renew the hint, and put a mark in place of the version that falls too far behind the head."""
        put(self._seal, client, self._instance_key("head"), b"%d" % head)
        if self._first and head - _KEPT > self._first.version:
            put(self._seal, client, self._version_key(head - _KEPT), _EMPTIED)
            self._compact(client, self._first.version, head - _KEPT)

    def _compact(self, client: WireClient, first: int, last: int) -> None:
        """Remove a block of marks if there are two; `last` is the later one. The floor is raised before."""
        floor = max(self._floor_version(), first)
        if last - floor < 2 * _BLOCK:
            return
        raised = self._seal.sealed(self._floor_key, b"%d" % (floor + _BLOCK))
        if client.compare_set(self._floor_key, self._floor, raised) == raised:
            self._floor = raised
            client.delete(*(self._version_key(version) for version in range(floor + 1, floor + _BLOCK + 1)))

    def _floor_version(self) -> int:
        """Return the last version that may be missing; 0 for none. Raises Unreadable."""
        if not self._floor:
            return 0
        floor = number(self._opened(self._floor_key, self._floor))
        if floor is None:
            raise self._keys.not_ours(f"{self._floor_key} is no number")
        return floor

    def _opened(self, key: str, data: bytes) -> bytes:
        try:
            return self._seal.opened(key, data)
        except Forged as error:
            place = self._keys.place
            raise Unreadable(f"the register of this job at {place} cannot be read: {key} {error}") from error

    def _decoded(self, data: bytes, key: str) -> RendezvousState:
        try:
            return self._sights.decoded(data)
        except codec.Refused as error:
            raise self._keys.not_ours(f"{key}: {error}") from error

    def _ahead(self, version: int, count: int) -> tuple[str, ...]:
        return tuple(self._version_key(version + step) for step in range(1, count + 1))

    def _beside(self, version: int) -> tuple[str, ...]:
        return (self._floor_key, *self._ahead(version, _AHEAD))

    @property
    def _floor_key(self) -> str:
        return self._instance_key("floor")

    def _version_key(self, version: int) -> str:
        return self._instance_key(str(version))

    def _instance_key(self, name: str) -> str:
        assert self._first
        return self._keys.of_instance(self._first.life, name)


def _present(values: Sequence[bytes]) -> list[bytes]:
    return list(takewhile(bool, values))
