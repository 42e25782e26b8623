"""Puts into the store where the time of this node went (`core/goodput/record.py`), beside the heartbeats.

The heart's thread writes: once for each start of the workers, once an hour, and at the end; and once where nodes have gone
whose time this one takes over. Beside all other heartbeats it compares some numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from ...core.rendezvous import RendezvousState
from ...core.values import evolve
from ...core.world import Life, Node
from ..clock import Clock
from ..report.news import Remark, TimeTold
from ..store.notes import TIMES, Notes
from ..store.port import StoreError
from .node_time import NodeTime

if TYPE_CHECKING:
    from ...core.goodput import JobTime, NodeRecord, Spent
    from ...core.goodput.record import Keeper

_LOOKS_MAX = 16
"""The last versions of the register wait for the next heartbeat."""


class TimeTeller:
    """The record of one node in the store, kept up to date."""

    def __init__(
        self, notes: Notes, node: Node, time: NodeTime, clock: Clock, told: Callable[[TimeTold | Remark], None]
    ) -> None:
        """`notes` are for the heart's thread, which also calls `told`."""
        self._notes = notes
        self._node = node
        self._time = time
        self._clock = clock
        self._told = told
        self._states = deque[RendezvousState](maxlen=_LOOKS_MAX)
        self._keeper: Keeper | None = None
        self._put_at: tuple[Life, int, bool] | None = None
        """The life of the register, the number of starts and whether this node had ended, as it put its record last."""
        self._again_at = 0.0
        self._has_ended = False
        self._on = True
        """False after an error, which costs the record alone."""

    def sees(self, state: RendezvousState) -> None:
        """Take a look at the register. Any thread may call it."""
        self._states.append(state)

    def end(self) -> bool:
        """Put the last record beside the next heartbeat. Return False if there is none. Any thread may call it."""
        self._has_ended = True
        return self._own() is not None

    def beaten(self, life: Life | None) -> None:
        """Put what is new. The heart's thread calls this after an acknowledged heartbeat, with the register's life. A store
        without a register is told nothing yet."""
        if life is None or not self._on:
            return
        at = life, self._time.starts, self._has_ended
        owes = self._states or (self._keeper and self._keeper.owed)
        if at == self._put_at and self._clock.now() < self._again_at and not owes:
            return
        try:
            self._tell(at)
        except StoreError:
            return  # the next heartbeat tries again
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the record, the job goes on
            self._lose(error)

    def job(self, others: Iterable[NodeRecord]) -> JobTime | None:
        """Return where the time of the job's nodes went by the records of the others; None if this one has none. Any thread
        may call it."""
        own = self._own()
        if own is None:
            return None
        from ...core.goodput import job_time
        from ...core.goodput.record import Keeper, record

        return job_time((record(self._keeper or Keeper(self._node), own, self._has_ended), *others))

    def _own(self) -> Spent | None:
        try:
            return self._time.spent(self._clock.now()) if self._on else None
        except Exception as error:  # noqa: BLE001 - the agent's end does not depend on it
            self._lose(error)
            return None

    def _lose(self, error: Exception) -> None:
        self._on = False
        self._told(
            Remark(f"where the time of this node went is not told to the store: {type(error).__name__}: {error}")
        )

    def _tell(self, at: tuple[Life, int, bool]) -> None:
        now = self._clock.now()
        own = self._time.spent(now)
        if own is None:
            return  # there is nothing to tell yet
        from ...core.goodput import micros
        from ...core.goodput.record import EVERY, TAKEN_AT_ONCE, Keeper, looked, missed, record, settled, told, took

        keeper = self._keeper or Keeper(self._node)
        before = frozenset(keeper.due)
        while self._states:
            keeper = looked(keeper, self._states.popleft())
        self._keeper = keeper
        if keeper.held and not self._has_ended:
            self._keeper = evolve(keeper, held=keeper.held - 1)
            return
        # who leaves puts a last record: the time of those seen to have gone just now waits for the next heartbeat
        due = tuple(islice((each for each in keeper.owed if each in before or self._has_ended), TAKEN_AT_ONCE))
        if not due and at == self._put_at and now < self._again_at:
            return
        if keeper.has_gone and self._node not in self._notes.read(TIMES, (self._node,)):
            if self._node not in keeper.seats:
                return  # nobody would take over what it puts now
            self._keeper = keeper = missed(keeper)
        if due:
            keeper = took(keeper, self._notes.read(TIMES, due))
        mine = record(keeper, own, self._has_ended, micros(self._clock.wall()))
        self._notes.put(TIMES, self._node, mine)
        self._keeper, self._put_at, self._again_at = told(keeper, own), at, now + EVERY / 1_000_000
        self._told(TimeTold(mine))
        if due:
            self._notes.drop(TIMES, due)
            self._keeper = settled(self._keeper, due)
