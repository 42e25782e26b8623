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
from ..properties.law import Law, Strength
from ..rendezvous import End, RendezvousState, Restore, Violation
from ..rendezvous.state import later_start
from ..world import Node, Why, WorldId
from .kinds import Costs, Kind
from .network import ANSWER_TIMEOUT_S
from .process import Process
from .recoveries import TAILS

KEPT_BEATS = 3
"""After this many heartbeat intervals the register must again hold the world that ran."""
FRESH_BEATS = 1.5
"""With the fence on, a node is well if its last acknowledged heartbeat is no older than this many heartbeat intervals."""

R12 = Law(
    "R12",
    "A world that the store loses stands again after 3 heartbeat intervals (3 more after an outage, one question more "
    "for each that is lost); until it ends for a reason of its own, each member that is well runs it, and each spare "
    "that is well has a seat, or a later start of its slot has it; an agent of another version that writes first, a "
    "copy that shows the job's verdict, and a notice that a member has, excuse it.",
    "the store loses a complete round",
)


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
    away_until: float = 0.0
    """Until when the store takes no writes."""

    def loses(self, register: RendezvousState | None, processes: Iterable[Process], now: float) -> None:
        """Note that the store has lost this register."""
        those = tuple(processes)
        delays = max([0, *(each.trouble.delays for each in those)]) * self._ask_s + TAILS * min(self.tail, self._ask_s)
        due_at = max(now, self.away_until) + KEPT_BEATS * self.interval + delays
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
        spares = self._those(those, lambda each: _is_spare(each, world) and each.main.prepared_at <= now, now)
        format = next((each.launch.format for each in those if each.node in members), 0)
        self.lost = LostWorld(world, register.job, due_at, members, spares, format)
        if any(each.held.view.state is not None and each.held.view.state.job != register.job for each in those):
            self.drops()  # somebody of another job may know more
        if world in self.over:
            self.drops()
        if self.fenced and (self.tail or self.away_until > now):
            self.drops()  # a message may take longer than a fence, and so may a store that is away
        self._excuses()

    def _those(self, processes: Iterable[Process], are: Callable[[Process], bool], now: float) -> set[Node]:
        return {each.node for each in processes if are(each) and self._is_well(each, now)}

    def _is_well(self, process: Process, now: float) -> bool:
        trouble, stalls = process.trouble, process.stalls
        learns = not trouble.delays and process.waiter.deaf_until <= now  # of the loss, before more heartbeats are lost
        heard = learns and process.clock.shows(now) - process.heart.beaten_at <= FRESH_BEATS * self.interval
        unanswered_s = ANSWER_TIMEOUT_S if self.fenced else 0.0  # a heartbeat that was cut off holds the next one up
        cut = trouble.cut_until > max(now - unanswered_s, 0.0)
        late = trouble.late_until > now  # it hears of the loss after that
        goes = process.group.deadline is not None
        woke = process.held.doubt.woke_at is not None  # its memory does not count yet
        fails = bool(process.workers and process.attempt.reported)  # and its agent may not have heard yet
        stands = stalls.over_at >= now or stalls.unnoticed_since is not None
        hindered = stands or cut or trouble.delay > 0 or late or goes or woke or fails
        return process.alive and not hindered and (heard or not self.fenced)

    @property
    def _ask_s(self) -> float:
        """How long a question may take that nobody answers, and the pause after it."""
        return ANSWER_TIMEOUT_S + self.interval

    def befalls(self, process: Process, kind: Kind) -> None:
        """Ask nothing more of this node, or give it time: this is done to it."""
        if self.lost is None or kind.row.costs is Costs.NOTHING:
            return
        if kind.row.costs is Costs.A_QUESTION and not self.fenced:
            self.lost.due_at += self._ask_s
        else:
            self.lost.members.discard(process.node)
            self.lost.spares.discard(process.node)
            self._excuses()

    def is_away(self, until: float) -> None:
        """Note that the store takes no writes until then. A fenced node stops its workers for that."""
        self.away_until = max(self.away_until, until)
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
            has_seat = process.node in register.seats or later_start(register, process.node)
            if process.node in lost.spares and not has_seat:
                raise Violation("R12", f"round {lost.id.round} was lost while {process.name} was well: it has no seat")


def _runs(process: Process, world: WorldId) -> bool:
    ran, state = process.attempt.world, process.held.view.state
    here = ran is not None and ran.id == world and process.group.phase in (Phase.RUNNING, Phase.BARRIER)
    return here and state is not None and state.world_id == world and process.held.found is None


def _is_spare(process: Process, world: WorldId) -> bool:
    state = process.held.view.state
    return state is not None and state.world_id == world and state.is_spare(process.node)


def _named(nodes: Iterable[Node]) -> str:
    return ", ".join(map(str, sorted(nodes)))
