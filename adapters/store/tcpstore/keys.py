"""The keys of one run in a TCPStore; `tcpstore.py` has their layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from ....core.rendezvous.state import NODES_MAX
from ....core.values import field, frozen
from ....core.world import NAME_MAX, Life, Node
from ..port import Log, Unreadable, spelled

WORKERS = "/workers/"
"""It stands in the run id of a register of the run's workers, between the run's own and the register's name."""


ROOT_MAX = 12 * NAME_MAX + 16
"""The most bytes of a root's key: a character of a run id has up to four bytes, and a byte up to three when it is quoted."""


_ROOT = re.compile("elastic/([^/]*)/root")


def runs_in(keys: Iterable[str | None]) -> Iterator[str | None]:
    """Yield the ids of the runs whose agents' register is among these keys, and None for keys that were not read."""
    for key in keys:
        root = _ROOT.fullmatch(key) if key is not None else None
        run_id = unquote(root[1]) if root else None
        if key is None or (run_id is not None and WORKERS not in run_id):
            yield run_id


@frozen
class Keys:
    """The keys of one run."""

    run_id: str
    place: str
    """The name of the store, for the texts."""
    prefix: str = field(init=False)
    root: str = field(init=False)

    @prefix.default
    def _prefix(self) -> str:
        return f"elastic/{quote(self.run_id, safe='')}"

    @root.default
    def _root(self) -> str:
        return self.key("root")

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}"

    def of_node(self, kind: str, node: Node) -> str:
        return self.key(f"{kind}/{spelled(node)}")

    def of_instance(self, first: Life, name: str) -> str:
        """Return a key of the store instance whose root began this life."""
        return self.key(f"{_quoted(first.nonce)}/{name}")

    def numbered(self, log: Log[Any], number: int) -> str:
        """Return the key of record `number` of a log, counted from 1. The places of the last ones are used over and over."""
        begin = log.first + 1 if log.first else 0
        again = begin + (number - begin) % log.last if log.wraps and number > log.first else number
        return self.key(f"{log.name}/{again}")

    def shown(self, log: Log[Any], count: int) -> list[str]:
        """Return the keys of the records that are shown when `count` were put."""
        first = range(1, min(count, log.first) + 1)
        last = range(max(count - log.last, log.first) + 1, count + 1)
        return [self.numbered(log, each) for each in (*first, *last)]

    def not_ours(self, reason: str) -> Unreadable:
        remedy = "if somebody else uses that store, give the job another --rdzv-id"
        return Unreadable(f"the store at {self.place} holds no register under {self.prefix} ({reason}): {remedy}")


@lru_cache(maxsize=2 * NODES_MAX)
def _quoted(name: str) -> str:
    return quote(name, safe="")
