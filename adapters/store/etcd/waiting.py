"""Waiting for a register's next change in an etcd: a feed tells of it, and a look now and then finds what it missed."""

from __future__ import annotations

import threading

from ....core.rendezvous import Token
from ...clock import Clock
from ..port import OutOfReach, Shown
from .feed import Change, Ended, Feed
from .members import ranged
from .run_client import Client
from .run_keys import Seen

PAUSE_S = 0.1
"""After a watch that ended as soon as it began, and before what is only a copy is shown again."""


class Waiting:
    """One client's. `close` may be called from any thread."""

    def __init__(self, client: Client, clock: Clock, fallback_s: float) -> None:
        """`fallback_s` is how often it looks by itself."""
        self._client = client
        self._clock = clock
        self._fallback_s = fallback_s
        self._feed: Feed | None = None
        self._looked_at = 0.0
        self._due = 0
        """What the last look saw: the feed, which may come late, has told of that revision by the next one."""
        self._closing = threading.Event()

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        """As the port has it."""
        while not self._closing.is_set():
            now = self._clock.now()
            due_at = min(self._looked_at + self._fallback_s, until)
            try:
                seen = self._look() if self._feed is None or now >= due_at else self._hear(self._feed, due_at - now)
            except OutOfReach:
                if self._closing.is_set():
                    break
                raise
            if seen and not seen.shown.here:
                self._closing.wait(PAUSE_S)  # a copy is never what the token names, and soon restored
                return seen.shown
            if seen and (seen.token != token or now >= until):
                return seen.shown
        self._drop_feed()
        latest = self._client.shared.latest
        return latest.shown if latest else Shown(None)

    def close(self) -> None:
        """A wait returns. Idempotent."""
        self._closing.set()
        if feed := self._feed:
            feed.wake()
            feed.close()

    def _look(self) -> Seen:
        """What stands, by a question of our own; and a feed of what comes after it."""
        client, feed = self._client, self._feed
        latest = client.shared.latest
        if latest is None or latest.state is None or feed is None:
            seen = client.read()
        else:
            answer = client.ask(ranged, client.keys.both(min_mod_revision=latest.revision + 1))
            unchanged = answer.header.cluster_id == latest.cluster and answer.count == 2 and not answer.kvs
            seen = latest if unchanged else client.read()
            if feed.told < self._due or seen.cluster != latest.cluster or feed.address != client.members.in_turn()[0]:
                self._drop_feed()  # it has missed something, or its member is no longer the one that answers
        self._due = seen.revision
        self._looked_at = self._clock.now()
        if self._feed is None:
            self._feed = client.line.watch(client.keys.register, seen.at + 1)
        return seen

    def _hear(self, feed: Feed, timeout_s: float) -> Seen | None:
        """What the feed brings in this time, if it is news."""
        shared, keys = self._client.shared, self._client.keys
        match feed.next(timeout_s):
            case Change(kv, deleted, cluster):
                latest = shared.latest
                if latest and latest.cluster == cluster and kv.mod_revision < (latest.revision or latest.at):
                    return None
                seen = Seen(cluster, at=kv.mod_revision) if deleted else keys.decoded(kv, cluster, kv.mod_revision)
                return shared.learn(seen)
            case Ended():
                self._drop_feed()
                if self._clock.now() < self._looked_at + self._fallback_s:  # the next one may end as soon
                    self._closing.wait(PAUSE_S)
                return None
            case None:
                return None

    def _drop_feed(self) -> None:
        feed, self._feed = self._feed, None
        if feed:
            feed.close()
