"""Wait for a register's next change in an etcd: a watch stream tells of it, and a regular read finds what it missed.

The read is linearizable, and comes once per heartbeat. While nothing changes its answer is a header alone. A stream that has
not told of a revision by the next read is opened anew.
"""

from __future__ import annotations

import threading

from ....core.rendezvous import Token
from ...clock import Clock
from ..port import OutOfReach, Shown
from .members import ranged
from .run_client import RunClient
from .run_keys import Seen
from .watch_stream import Change, Ended, WatchStream

_PAUSE_S = 0.1
"""The pause after a stream that ended as soon as it began, and before a copy is shown again."""


class ChangeWaiter:
    """The waits of one client. `close` may be called from any thread."""

    def __init__(self, client: RunClient, clock: Clock, fallback_s: float) -> None:
        """`fallback_s` is how often a wait reads the register without being told of a change."""
        self._client = client
        self._clock = clock
        self._fallback_s = fallback_s
        self._stream: WatchStream | None = None
        self._looked_at = 0.0
        self._due = 0
        """The revision that the last read saw. The stream may be late, but must have told of it by the next read."""
        self._closing = threading.Event()

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        """Wait as the port's `wait_for_change` does."""
        while not self._closing.is_set():
            now = self._clock.now()
            due_at = min(self._looked_at + self._fallback_s, until)
            try:
                seen = self._look() if self._stream is None or now >= due_at else self._hear(self._stream, due_at - now)
            except OutOfReach:
                if self._closing.is_set():
                    break
                raise
            if seen and not seen.shown.here:
                self._closing.wait(_PAUSE_S)  # a copy is never what the token names, and soon restored
                return seen.shown
            if seen and (seen.token != token or now >= until):
                return seen.shown
        self._drop_stream()
        latest = self._client.shared.latest
        return latest.shown if latest else Shown(None)

    def close(self) -> None:
        """Make a wait return. Idempotent."""
        self._closing.set()
        if stream := self._stream:
            stream.wake()
            stream.close()

    def _look(self) -> Seen:
        """Read the register, and open a stream of its later changes if there is none."""
        client, stream = self._client, self._stream
        latest = client.shared.latest
        if latest is None or latest.state is None or stream is None:
            seen = client.read()
        else:
            answer = client.ask(ranged, client.keys.both(min_mod_revision=latest.revision + 1))
            unchanged = answer.header.cluster_id == latest.cluster and answer.count == 2 and not answer.kvs
            seen = latest if unchanged else client.read()
            if (
                stream.told < self._due
                or seen.cluster != latest.cluster
                or stream.address != client.members.in_turn()[0]
            ):
                self._drop_stream()  # it has missed something, or its member is no longer the one that answers
        self._due = seen.revision
        self._looked_at = self._clock.now()
        if self._stream is None:
            self._stream = client.cluster.watch(client.keys.register, seen.at + 1)
        return seen

    def _hear(self, stream: WatchStream, timeout_s: float) -> Seen | None:
        """Return the next change from the stream, None if none comes in this time or it is known already."""
        shared, keys = self._client.shared, self._client.keys
        match stream.next(timeout_s):
            case Change(kv, deleted, cluster):
                latest = shared.latest
                if latest and latest.cluster == cluster and kv.mod_revision < (latest.revision or latest.at):
                    return None
                seen = Seen(cluster, at=kv.mod_revision) if deleted else keys.decoded(kv, cluster, kv.mod_revision)
                return shared.learn(seen)
            case Ended():
                self._drop_stream()
                if self._clock.now() < self._looked_at + self._fallback_s:  # the next one may end as soon
                    self._closing.wait(_PAUSE_S)
                return None
            case None:
                return None

    def _drop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream:
            stream.close()
