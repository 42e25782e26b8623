"""Two worlds of one job that run at once, each completed in another life of the register (S18).

A store that loses its memory may have a world completed before a survivor could answer. The workers of the survivor run on
until its agent hears of that. So the two worlds are counted, and their overlap has a bound: a node whose world does not
stand stops it soon, unless something keeps it from hearing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from attrs import define, field

from ..group import Phase
from ..properties.judge import Judge
from ..properties.law import Law
from ..rendezvous import Violation
from ..world import Node, WorldId
from .future import Future
from .process import Process
from .recoveries import PARTS
from .simulated_store import Store
from .story import Setting

NEEDS = ("messages", "ask", "look", "stop")
"""A node that runs a world which does not stand needs these parts: it asks, hears, and stops its workers."""

S18 = Law(
    "S18",
    "Where two worlds of one job run in two lives, a node that runs one which does not stand stops it, or moves on, "
    "within `messages`, `ask`, `look` and `stop` (of the [bounds](#bounds)) of when it could hear of that.",
    "two worlds of one job run at once, completed in two lives, and a node runs one that does not stand",
)


def bound(setting: Setting) -> float:
    """Return how long a node may run a world of another life that does not stand."""
    return sum(PARTS[part](setting) for part in NEEDS)


@define
class Overlaps:
    """The nodes that run a world which does not stand, beside another world of their job."""

    future: Future
    store: Store
    by_node: Mapping[Node, Process]
    judge: Judge
    counts: Counter[str]
    may_s: float
    since: dict[Node, float] = field(factory=dict)
    """This maps each of them to the time since when it could have known."""
    longest_s: float = 0.0

    def moved(self) -> None:
        """Look at the world after something changed. Raises Violation."""
        if not self.store.losses or (not self.since and len(self.judge.running) < 2):
            return
        now, since = self.future.now, self.since
        astray = set(self._astray())
        for node in [node for node in since if node not in astray]:
            del since[node]
        for node in sorted(astray):
            if node not in since:
                self.judge.strength.armed["S18"] += 1
                self.counts["two worlds of one job in two lives"] += 1
            since[node] = max(since.get(node, now), self._hears_from(self.by_node[node], now))
            self.longest_s = max(self.longest_s, now - since[node])
            if now - since[node] > self.may_s:
                ran, span = self.judge.running[node].id, now - since[node]
                raise Violation(
                    "S18", f"{node} runs round {ran.round} of another life for {span:.2f} s, at most {self.may_s:g} s"
                )

    def _astray(self) -> Iterator[Node]:
        register, running = self.store.register, self.judge.running
        stands = register.world_id if register else None
        worlds = {world.id for world in running.values()}
        if len({world.life for world in worlds}) < 2:
            return
        for node, world in running.items():
            if self.by_node[node].group.phase is Phase.MOVING:
                continue  # it knows that its world is over, and its workers live on into the next one
            if world.id != stands and any(self._is_twin(other, world.id) for other in worlds):
                yield node

    def _is_twin(self, one: WorldId, other: WorldId) -> bool:
        return one.life != other.life and self.judge.job(one) == self.judge.job(other)

    def _hears_from(self, process: Process, now: float) -> float:
        """Return from when on this node can hear of the register: now, if something keeps it from that."""
        trouble, stalls = process.trouble, process.stalls
        late = stalls.unnoticed_since is not None or trouble.delay or trouble.delays or not process.alive
        away = max(self.store.down_until, self.store.full_until, trouble.cut_until)
        return now if late else min(max(away, stalls.over_at), now)
