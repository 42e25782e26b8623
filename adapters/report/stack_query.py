"""Asks all agents of a running job what their workers are doing, through the job's store.

One query stands in the store at a time. Whoever finds another's waits until that one is withdrawn, or has stood for so
long that its asker must be gone. A query that a store has lost is put again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ...core.world import Node
from ..clock import Clock
from ..store.notes import Notes
from ..store.port import StoreError
from ..store.queries import Query, Reply

OTHERS_S = 4.0
"""Another's query may stand for this long."""
_PAUSE_S, _PAUSE_MAX_S = 0.05, 0.5


def new_query(round: int, rank: int | None) -> Query:
    """Return a query with an id of its own."""
    return Query(os.urandom(8).hex(), round, rank)


def replies_to(
    query: Query, nodes: Iterable[Node], notes: Notes, clock: Clock, timeout_s: float
) -> Mapping[Node, Reply]:
    """Ask, and return the replies of those of these nodes that answer in time. Nothing stays in the store. Raises
    StoreError."""
    silent, found = list(nodes), dict[Node, Reply]()
    every, until, pause_s = tuple(silent), clock.now() + timeout_s, _PAUSE_S
    others, others_since, is_ours = "", clock.now(), False
    try:
        while silent:
            stands = notes.replies(silent)
            found |= stands.to(query)
            silent = [node for node in silent if node not in found]
            now, is_ours = clock.now(), stands.query is not None and stands.query.id == query.id
            if stands.query and stands.query.id != others:
                others, others_since = stands.query.id, now
            if not is_ours and (stands.query is None or now - others_since >= OTHERS_S):
                notes.put_query(query)
                is_ours = True
            if now >= until:
                break
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    finally:
        if is_ours:
            with suppress(StoreError):
                notes.withdraw_query(every)
    return found
