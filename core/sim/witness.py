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
from ..properties.law import Law
from ..rendezvous import Arrive, End, Evict, Leave, RendezvousState, Restore, Status, Together, Violation, Write
from ..rendezvous.context import gone
from ..world import Node, Why
from . import writes
from .future import Future
from .kinds import Kind
from .losses import Losses
from .lost_worlds import LostWorlds
from .narration import Narrator, sentence
from .network import ANSWER_TIMEOUT_S
from .overlaps import Overlaps
from .owners import Owners
from .process import Process
from .raises import Causes
from .recoveries import Recoveries
from .simulated_store import Store
from .story import Setting, name
from .traffic import Traffic

BEATS_LATE = 2
"""For how many heartbeats a silence counts after it is over."""

L3 = Law(
    "L3",
    "No node is evicted whose heartbeats came in time, but on evidence of a link.",
    "somebody is evicted for its silence",
)
L4 = Law(
    "L4",
    "No more rounds end as FAILED than worlds failed or were restored, as LOST than nodes were evicted or started "
    "again, as LEFT than left, as UPSCALE than newcomers came to wait, as FENCED than fled or were restored.",
    "a run is over in which a round ended for this reason",
)
L8 = Law(
    "L8",
    "A node that lives, or whose workers live, is evicted on evidence only if the network refused in its name, and "
    "once.",
    "somebody is evicted on the evidence of a link",
)


@define
class Witness:
    setting: Setting
    future: Future
    store: Store
    by_node: Mapping[Node, Process]
    """All processes that were ever started."""
    judge: Judge
    losses: Losses
    lost_worlds: LostWorlds
    recoveries: Recoveries
    overlaps: Overlaps
    traffic: Traffic
    blames: Causes
    owners: Owners
    tell: Narrator | None = None
    writes: int = 0
    ends: Counter[Why] = field(factory=Counter)
    """How many rounds ended, by the reason."""
    counts: Counter[str] = field(factory=Counter)
    causes: Counter[str] = field(factory=Counter)
    """What may have ended a round, beside failures: evictions, leaves, newcomers, fencings."""
    accused: set[Node] = field(factory=set)
    """The living nodes that were evicted on evidence."""
    well_at: float | None = None
    """From when on the healed world must be well."""

    def living(self) -> Iterator[Process]:
        return (process for process in self.by_node.values() if process.alive)

    def landed(self, process: Process, number: int, before: RendezvousState | None, write: Write, here: bool) -> None:
        self.writes += 1
        after = write.state
        if number in process.loop.unsure or number < process.loop.request:
            self.recoveries.befalls(Kind.LATE_WRITE)
            self.counts["a late write lands"] += 1
            if process.loop.read_after > number:
                self.counts["a write lands after its node re-read"] += 1
        if process.loop.slandered is not None and process.loop.slandered[0] == number:
            raise Violation(
                "L3", f"{process.name} throws out {name(process.loop.slandered[1])}, whose heartbeats came in time"
            )
        if process.loop.accused is not None and process.loop.accused[0] == number:
            self._judges_evidence(*process.loop.accused[1:], after)
        fact = Wrote(process.node, before, write.edit, after, here)
        self.judge.saw(fact)
        self._judges_reserves(fact)
        if fact.completes and process.held.who.policy is not None and not after.policy:
            raise Violation("V13", f"{process.name} completes round {after.round}, and does not sign its world")
        self.blames.wrote(fact)
        self.lost_worlds.wrote(fact, process.launch.format)
        self.traffic.wrote(process.node, before, write)
        self.losses.wrote(fact, self.living(), self.future.now, self.store.records)
        if isinstance(write.edit, End) and write.edit.why is Why.FAILED and Kind.FAIL not in self.recoveries.kinds:
            self.recoveries.befalls(Kind.FAIL)  # for a failure of long ago, of which another node was to tell
        if isinstance(write.edit, Arrive) and before is not None and _is_aside(before, process.node):
            self.recoveries.befalls(Kind.START)
        if not isinstance(write.edit, Restore) and before is not None and after.ended and after.round > before.round:
            self.ends[after.ended.why] += 1
        writes.shown(self.counts, self.by_node, fact)
        for cause in _causes(fact):
            self.causes[cause] += 1
        if self.tell:
            self.narrates(process.name, sentence(write.edit, after))
        self.moved()

    def _judges_reserves(self, fact: Wrote) -> None:
        """Judge S14b: a node that becomes a reserve has no work in its world."""
        after, was = fact.after, fact.before.those(Status.RESERVE) if fact.before else ()
        for node in () if isinstance(fact.edit, Restore) else after.those(Status.RESERVE):
            if node in was:
                continue
            self.judge.strength.armed["S14b"] += 1
            process = self.by_node[node]
            if not (process.attempt.idle and process.attempt.world and process.attempt.world.id == after.world_id):
                raise Violation("S14b", f"{node} is a reserve in round {after.round}, in which its workers have work")

    def moved(self) -> None:
        """Look at the world after something changed. Raises Violation."""
        self.overlaps.moved()
        self.recoveries.moved()

    def takes(self, node: Node, what: object) -> None:
        self.blames.takes(node, what)

    def befalls(self, process: Process, kind: Kind) -> None:
        """Note that something befalls this node that no operation has done to it."""
        self.lost_worlds.befalls(process, kind)
        self.recoveries.befalls(kind)

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
        told = gone(process.held, process.clock.shows(now))
        self.judge.strength.armed["L8"] += len(told)
        process.loop.accused = process.loop.requests + 1, now, frozenset(node for node in told if self._lives(node))
        for node in sorted(edit.dead - told):
            dead = self.by_node[node]
            self.judge.strength.armed["L3"] += 1
            self.judge.strength.excused["L3"] += dead.agent.outcome is not None
            if dead.agent.outcome is None and not self.store.silent_for(
                node, span, dead.launch.at, now, late, late + ANSWER_TIMEOUT_S
            ):
                process.loop.slandered = (process.loop.requests + 1, node)

    def _lives(self, node: Node) -> bool:
        return self.by_node[node].alive or bool(self.by_node[node].workers)

    def _judges_evidence(self, decided_at: float, living: frozenset[Node], after: RendezvousState) -> None:
        """Judge L8: a node that lives is evicted on evidence only where the network refuses in its name, and once. The write
        may land long after it was decided."""
        for node in sorted(living):
            process = self.by_node[node]
            late = 2 * self.setting.interval * (1 + 2 * self.setting.drift) + 2 * ANSWER_TIMEOUT_S
            if process.trouble.refused_at < decided_at - late:
                raise Violation("L8", f"{name(node)} is thrown out on evidence, and lives")
            if node in self.accused:
                raise Violation("L8", f"{name(node)} is thrown out on evidence a second time, and lives")
            self.accused.add(node)
            self.judge.misled[node] = after.round + (node in after.seats)  # a reserve is told when the round ends
            self.counts["evicted on evidence, and lives"] += 1

    def judges_excuse(self, process: Process, why: Why) -> None:
        """Judge L2: the reason that a node is given when it must give up."""
        if why is Why.TIMEOUT and self.well_at is not None and self.future.now > self.well_at:
            raise Violation("L2", f"{process.name} has found no world, but all has been well for long")

    def judges_rounds(self) -> None:
        """Judge L4 and G9, at the end of a run."""
        if self.setting.echoes:
            self.blames.judges()
        self.judge.strength.armed["L4"] += len(self.ends)
        self.causes["failures"] = sum(len(rounds) for rounds in self.judge.failed.values())
        for why, many in self.ends.items():
            may = sum(self.causes[cause] for cause in MAY_END[why])
            if many > may:
                raise Violation("L4", f"{many} rounds ended as {why.value}, and {may} may have: {dict(self.causes)}")


MAY_END: Mapping[Why, tuple[str, ...]] = {
    Why.FAILED: ("failures", "restores"),
    Why.LOST: ("evictions", "successors"),
    Why.LEFT: ("leaves",),
    Why.UPSCALE: ("newcomers",),
    Why.FENCED: ("fencings", "restores"),
}
"""This maps the reason of a round's end to what may have caused it. A world that is restored may end once more as it had."""


def _is_aside(register: RendezvousState, node: Node) -> bool:
    return node in register.seats and register.seats[node].status is Status.ASIDE


def _brought_by(before: RendezvousState | None, node: Node, after: RendezvousState) -> Iterator[str]:
    """Yield what the arrival of this node brings, if it is new or was set aside."""
    seat = after.seats.get(node)
    if seat is None or (before is not None and node in before.seats and not _is_aside(before, node)):
        return
    if seat.status is Status.WAITING:
        yield "newcomers"
    if any(each.slot == node.slot for each in (before.seats if before else ())):
        yield "successors"


def _causes(fact: Wrote) -> Iterator[str]:
    """Yield what a write brings that may end this round, or a later one: each by its name."""
    before = fact.before
    match fact.edit:
        case Arrive():
            yield from _brought_by(before, fact.node, fact.after)
        case Together(proposals):
            for node in proposals:
                yield from _brought_by(before, node, fact.after)
        case Leave():
            yield "leaves"
        case Restore():
            yield "restores"
        case Evict() if before is not None:
            yield from ("evictions" for node in before.seats if node not in fact.after.seats)
        case _:
            pass
