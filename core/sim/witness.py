"""The witness of a simulated world: it judges, counts and tells everything that happens.

The first violation is raised where it happens. The facts go to the `Judge`; `Losses` judges what a lost store must not cost.
The witness itself judges L2 to L4, which need the whole world and which no process can know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from attrs import define, field

from ..properties.facts import Wrote
from ..properties.judge import Judge
from ..rendezvous import Arrive, Evict, Leave, RendezvousState, Restore, Violation, Write
from ..world import Node, Why
from . import writes
from .future import Future
from .losses import Losses
from .narration import Narrator, sentence
from .network import ANSWER_TIMEOUT_S
from .process import Process
from .simulated_store import Store
from .story import Setting, name

BEATS_LATE = 2
"""A silence counts for so many heartbeats after it is over."""


@define
class Witness:
    setting: Setting
    future: Future
    store: Store
    by_node: Mapping[Node, Process]
    """All processes that were ever started."""
    judge: Judge
    losses: Losses
    tell: Narrator | None = None
    writes: int = 0
    rounds: int = 0
    """Rounds that ended."""
    counts: Counter[str] = field(factory=Counter)
    causes: Counter[str] = field(factory=Counter)
    """What may have ended a round, beside failures: evictions, leaves, arrivals, fencings."""
    well_at: float | None = None
    """From when on the healed world must be well."""

    def living(self) -> Iterator[Process]:
        return (process for process in self.by_node.values() if process.alive)

    def landed(self, process: Process, number: int, before: RendezvousState | None, write: Write, here: bool) -> None:
        self.writes += 1
        after = write.state
        if number in process.unsure or number < process.request:
            self.counts["a late write lands"] += 1
            if process.read_after > number:
                self.counts["a write lands after its node re-read"] += 1
        if process.slandered is not None and process.slandered[0] == number:
            raise Violation(
                "L3", f"{process.name} throws out {name(process.slandered[1])}, whose heartbeats came in time"
            )
        fact = Wrote(process.node, before, write.edit, after, here)
        self.judge.saw(fact)
        self.losses.wrote(fact, self.living(), self.future.now)
        if before is not None and after.round > before.round:
            self.rounds += 1
        writes.shown(self.counts, self.by_node, fact)
        for cause in _causes(fact):
            self.causes[cause] += 1
        if self.tell:
            self.narrates(process.name, sentence(write.edit, after))

    def seen(self, what: str) -> None:
        self.counts[what] += 1

    def narrates(self, who: str, what: str) -> None:
        if self.tell:
            self.tell(self.future.now, who, what)

    # --- what must hold

    def notes_slander(self, process: Process, edit: Evict) -> None:
        """Judge L3: no node is evicted whose heartbeats came in time. It is judged when decided, counted when the write
        lands."""
        setting, now = self.setting, self.future.now
        span = self.store.ttl * (1 - 2 * setting.drift) - 1e-6
        late = BEATS_LATE * setting.interval * (1 + 2 * setting.drift) + 1e-6
        for node in sorted(edit.dead):
            dead = self.by_node[node]
            if dead.outcome is None and not self.store.silent_for(
                node, span, dead.born_at, now, late, late + ANSWER_TIMEOUT_S
            ):
                process.slandered = (process.requests + 1, node)

    def judges_excuse(self, process: Process, why: Why) -> None:
        """Judge L2: the reason that a node is given when it must give up."""
        if why is Why.TIMEOUT and self.well_at is not None and self.future.now > self.well_at:
            raise Violation("L2", f"{process.name} has found no world, but all has been well for long")

    def judges_rounds(self) -> None:
        """Judge L4, at the end of a run."""
        failed = sum(len(rounds) for rounds in self.judge.failed.values())
        if self.rounds > failed + self.causes.total():
            raise Violation("L4", f"{self.rounds} rounds ended, {failed} of them failed, by {dict(self.causes)}")


def _causes(fact: Wrote) -> Iterator[str]:
    """Yield what a write brings that may end this round, or a later one: each by its name."""
    before = fact.before
    match fact.edit:
        case Arrive() if before is None or fact.node not in before.seats:
            yield "arrivals"
        case Leave():
            yield "leaves"
        case Restore():
            yield "restores"
        case Evict() if before is not None:
            yield from ("evictions" for node in before.seats if node not in fact.after.seats)
        case _:
            pass
