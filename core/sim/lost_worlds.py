"""The world that a store loses while it runs: it stands again soon, and nobody who is well stops for that (R12).

A node is excused by what is done to it, and by nothing that is done to another one. A loss asks nothing if no member was
well, if somebody knew another job, if the end of the world was written and then lost, if strangers completed a world
before a survivor could answer, or if an agent of another version wrote its own register first, which no survivor reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, field

from ..group import Phase
from ..properties.facts import Wrote
from ..properties.strength import Strength
from ..rendezvous import End, RendezvousState, Restore, Violation
from ..world import Node, Why, WorldId
from .network import ANSWER_TIMEOUT_S
from .process import Process
from .recoveries import TAILS
from .story import Kind

KEPT_BEATS = 3
"""After so many heartbeat intervals the register must again hold the world that ran."""
FRESH_BEATS = 1.5
"""With the fence on, a node is well if its last acknowledged heartbeat is no older than so many heartbeat intervals."""

HARMLESS = frozenset(
    (
        *(Kind.UNLINK, Kind.MUTE, Kind.TWICE, Kind.HANG, Kind.UNSTARTABLE),
        *(Kind.UNFIT, Kind.HANG_CHECK, Kind.BREAK_CHECK),
    )
)
"""What may befall a node that is well, and neither stops its workers nor delays it."""
DELAYS = frozenset((Kind.LOSE_REPLY, Kind.LATE_WRITE, Kind.LATE_REPLY, Kind.GAP))
"""What costs a node one question. With the fence that may be too much: no heartbeat counts until it knows the new life."""


@define
class LostWorld:
    """A world that was lost, and who must not pay for that."""

    id: WorldId
    job: str
    due_at: float
    """When it must stand again."""
    members: set[Node]
    """Those who ran it, and to whom nothing was done since."""
    spares: set[Node]
    """The same of its spares."""
    format: int = 0
    """They read and write this format of the register."""


@define
class LostWorlds:
    """The last world that was lost, until it has been judged."""

    interval: float
    """From one heartbeat to the next."""
    fenced: bool
    tail: float = 0.0
    """How much longer the slowest messages take."""
    strength: Strength = field(factory=Strength)
    lost: LostWorld | None = None
    over: set[WorldId] = field(factory=set)
    """The worlds whose end was written. The store may lose that, and somebody may know of it."""

    def loses(self, register: RendezvousState | None, processes: Iterable[Process], now: float) -> None:
        """Note that the store has lost this register."""
        those = tuple(processes)
        delays = max([0, *(each.delays for each in those)]) * self._ask_s + TAILS * min(self.tail, self._ask_s)
        due_at = now + KEPT_BEATS * self.interval + delays
        if self.lost is not None and (register is None or register.world_id in (None, self.lost.id)):
            self.lost.due_at = due_at  # it is lost again, before it was judged
            well = self._those(those, lambda each: True, now)  # a loss may cost a heartbeat, and two of them a fence
            self.lost.members &= well
            self.lost.spares &= well
            self._excuses()
            return
        self.drops()
        if register is None or register.world_id is None or register.closed:
            return
        self.strength.armed["R12"] += 1
        world = register.world_id
        members = self._those(those, lambda each: _runs(each, world), now)
        spares = self._those(those, lambda each: _is_spare(each, world) and each.prepared_at <= now, now)
        format = next((each.format for each in those if each.node in members), 0)
        self.lost = LostWorld(world, register.job, due_at, members, spares, format)
        if any(each.held.state is not None and each.held.state.job != register.job for each in those):
            self.drops()  # somebody of another job may know more
        if world in self.over:
            self.drops()
        if self.fenced and self.tail:
            self.drops()  # a message may take longer than a fence
        self._excuses()

    def _those(self, processes: Iterable[Process], are: Callable[[Process], bool], now: float) -> set[Node]:
        return {each.node for each in processes if are(each) and self._is_well(each, now)}

    def _is_well(self, process: Process, now: float) -> bool:
        heard = process.clock(now) - process.beaten_at <= FRESH_BEATS * self.interval and not process.delays
        cut_until = max(process.cut_out_until, process.cut_in_until)
        unanswered_s = ANSWER_TIMEOUT_S if self.fenced else 0.0  # a heartbeat that was cut off holds the next one up
        since = max(now - unanswered_s, 0.0)
        late = process.late_until > now  # it hears of the loss after that
        goes = process.group.notice is not None
        woke = process.held.woke_at is not None  # its memory does not count yet
        stands = process.stands_until >= now or cut_until > since or process.delay > 0 or late or goes or woke
        return process.alive and not stands and process.stopped_since is None and (heard or not self.fenced)

    @property
    def _ask_s(self) -> float:
        """How long a question may take that nobody answers, and the pause after it."""
        return ANSWER_TIMEOUT_S + self.interval

    def befalls(self, process: Process, kind: Kind) -> None:
        """Ask nothing more of this node, or give it time: this is done to it."""
        if self.lost is None or kind in HARMLESS:
            return
        if kind in DELAYS and not self.fenced:
            self.lost.due_at += self._ask_s
        else:
            self.lost.members.discard(process.node)
            self.lost.spares.discard(process.node)
            self._excuses()

    def is_away(self, until: float) -> None:
        """Note that the store takes no writes until then. A fenced node stops its workers for that."""
        if self.fenced:
            self.drops()
        elif self.lost is not None:
            self.lost.due_at = max(self.lost.due_at, until + KEPT_BEATS * self.interval)

    def _excuses(self) -> None:
        if self.lost is not None and not self.lost.members:
            self.drops()

    def drops(self) -> None:
        """Ask nothing of the last loss."""
        self.strength.excused["R12"] += self.lost is not None
        self.lost = None

    def wrote(self, fact: Wrote, format: int = 0) -> None:
        """Judge a write in this format. Raises Violation."""
        lost, before, after = self.lost, fact.before, fact.after
        ran = before.world_id if before is not None else None
        if ran is not None and (after.world_id != ran or after.closed) and not isinstance(fact.edit, Restore):
            self.over.add(ran)
        if lost is not None and format != lost.format:
            self.drops()
            return
        if lost is None or isinstance(fact.edit, Restore):
            return
        if ran == lost.id and ran in self.over:
            if fact.node in lost.members and isinstance(fact.edit, End) and fact.edit.why is Why.FENCED:
                raise Violation("R12", f"round {lost.id.round} was lost while {fact.node} was well; it fled from it")
            self.lost = None  # it stood again, and is over for a reason of its own
        elif fact.completes or after.closed:
            self.drops()

    def stands(self, register: RendezvousState | None, processes: Iterable[Process], now: float) -> None:
        """Judge the last loss, if it is time. Raises Violation."""
        lost = self.lost
        if lost is None or now < lost.due_at:
            return
        self.lost = None
        if register is None or register.world_id != lost.id:
            raise Violation(
                "R12", f"round {lost.id.round} was lost, which {_named(lost.members)} ran: it does not stand again"
            )
        for process in processes:
            if process.node in lost.members and not _runs(process, lost.id):
                raise Violation("R12", f"round {lost.id.round} was lost while {process.name} was well: it has stopped")
            if process.node in lost.spares and process.node not in register.seats:
                raise Violation("R12", f"round {lost.id.round} was lost while {process.name} was well: it has no seat")


def _runs(process: Process, world: WorldId) -> bool:
    ran, state = process.ran, process.held.state
    here = ran is not None and ran.id == world and process.group.phase in (Phase.RUNNING, Phase.BARRIER)
    return here and state is not None and state.world_id == world and process.held.found is None


def _is_spare(process: Process, world: WorldId) -> bool:
    state = process.held.state
    return state is not None and state.world_id == world and state.is_spare(process.node)


def _named(nodes: Iterable[Node]) -> str:
    return ", ".join(map(str, sorted(nodes)))
