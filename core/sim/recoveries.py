"""How long a world takes to come to rest after its faults, and how long it may take (L9); how long the dead keep a seat
(L10).

An episode begins when something befalls a world, or when it moves by itself. It is calm once its last fault is over. It ends
when the world rests: one complete world in which each living node runs or is a spare, and nobody dead has a seat; or a
verdict, which all have heard. From calm to rest it may last for the sum of its parts. Each kind of fault needs some of
them (`kinds`, docs/protocol.md#bounds).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from attrs import define, field

from ..group import Phase
from ..group.state import KILL_S
from ..properties.law import Law, Strength
from ..properties.outcome_laws import is_idle
from ..rendezvous import RendezvousState, Status, Violation
from ..rendezvous.context import GROWN_RUNS, LEASE_S
from ..rendezvous.state import STAND_INS
from ..values import frozen
from ..world import Life, Node
from .future import Future
from .kinds import Kind
from .narration import standing
from .network import ANSWER_TIMEOUT_S
from .process import Process
from .simulated_store import Store
from .story import Backend, Setting
from .workers import CHECK_TIMEOUT_S

REACH_S = 0.7
"""A node whose messages take longer than this, each way, is out of reach, whatever its TTL."""
TURNS = 12
"""The most questions that a node asks, one after the other, on its way into a world."""

TAILS = 3
"""This many messages of a recovery may take the longest time that this world has."""

L9 = Law(
    "L9",
    "Once all faults are over, a world that has enough nodes rests within the [bound](#bounds) of what befell it.",
    "a world does not rest, and all faults are over",
)
L10 = Law(
    "L10",
    "A dead node loses its seat within `detect`, `ask` and `messages` of its death (more by twice the drift of clocks), "
    "while somebody is there to notice (a slow coordinator that is expected back is not, nor is a node to which what "
    "was sent while it was slow is under way) and nobody is out of reach.",
    "a seated node is dead",
)


def _patience(setting: Setting) -> float:
    return 2 * setting.rendezvous.patience


def _stop(setting: Setting) -> float:
    return setting.longest_grace + KILL_S


def _reach(setting: Setting) -> float:
    """Return how long messages may take, each way, to and from a node that is in reach. Its workers start at an answered
    heartbeat, which is no older than a quarter of the TTL."""
    return min(REACH_S, setting.rendezvous.ttl / 8)


def _ask(setting: Setting) -> float:
    """Return how long a question may take that nobody answers, and the pause after it."""
    return ANSWER_TIMEOUT_S + setting.interval


def _waits(setting: Setting) -> float:
    """Return how long a newcomer waits for its standbys, and then for the rest of its party."""
    return setting.standbys + (setting.party_wait if setting.party > 1 else 0.0)


def _newcomer_waits(setting: Setting) -> float:
    """Return how long a newcomer waits before the round ends for it: most of all if that began for another one."""
    return max(setting.upscale, min(GROWN_RUNS * setting.upscale, setting.join / 2), _waits(setting))


def _silences(setting: Setting) -> float:
    """Return after how many TTLs a silence is noticed at the latest. The coordinator may be dead too: others are watched
    once it was silent for half a TTL, or when its lease has ended. Where not all nodes stand in for the coordinator, it
    takes half a TTL more to see that those who do are dead too."""
    shown_after = 1.0 if setting.backend is Backend.LEASE else 0.5
    return shown_after + (1.0 if setting.nodes <= STAND_INS + 1 else 1.5)


def _behind(setting: Setting) -> float:
    """Return how long a node whose clock is behind watches the last start of its slot."""
    return (3 if setting.backend is Backend.LEASE else 2) * max(setting.rendezvous.ttl, LEASE_S)


PARTS: Mapping[str, Callable[[Setting], float]] = {
    "ask": _ask,
    "again": _ask,
    "look": lambda setting: setting.interval,
    "detect": lambda setting: _silences(setting) * setting.rendezvous.ttl + 2 * setting.interval + _patience(setting),
    "stop": _stop,
    "gather": lambda setting: setting.last_call + _patience(setting),
    "grow": lambda setting: _newcomer_waits(setting) + _patience(setting) + _stop(setting),
    "behind": lambda setting: _behind(setting) + 2 * setting.interval + _patience(setting),
    "check": lambda setting: CHECK_TIMEOUT_S if setting.checks else 0.0,
    "join": lambda setting: setting.join,
    "leave": lambda setting: setting.rendezvous.leave_timeout,
    "messages": lambda setting: 1.0 + 0.1 * setting.nodes + TAILS * min(setting.tail, _ask(setting)),
    "delays": lambda setting: 2 * TURNS * _reach(setting),
}
"""The parts of a recovery, and how long each may last."""
ALWAYS = ("messages", "ask")
"""The parts that every recovery needs."""


def lengths(setting: Setting) -> Mapping[str, float]:
    """Return how long each part of a recovery may last in this world."""
    return {part: length(setting) for part, length in PARTS.items()}


def bound(of: Mapping[str, float], kinds: Collection[Kind]) -> float:
    """Return how long a world with parts of these lengths may take from calm to rest after these faults. Each part counts
    once, but for `again`."""
    parts = [part for kind in kinds for part in kind.row.recovery]
    needs = sorted({*ALWAYS, *parts} - {"again"}) + ["again"] * parts.count("again")
    return sum(of[part] for part in needs)


def bound_of_the_dead(setting: Setting) -> float:
    """Return how long a dead node may keep its seat while somebody is there to notice. Two clocks may run apart."""
    return sum(PARTS[part](setting) for part in ("detect", *ALWAYS)) * (1 + 2 * setting.drift)


@frozen
class Recovery:
    """An episode that is over: its faults, how long it took from calm to rest, and how long it might have."""

    kinds: frozenset[Kind]
    took_s: float
    may_s: float
    at: float


@define
class Recoveries:
    """The episodes of a world."""

    setting: Setting
    future: Future
    store: Store
    by_node: Mapping[Node, Process]
    strength: Strength
    over: list[Recovery] = field(factory=list)
    kinds: set[Kind] = field(factory=set)
    """These befell the world in the present episode."""
    is_open: bool = False
    calm_at: float = 0.0
    rests_at: float | None = 0.0
    """Since when the world rests."""
    died_at: dict[Node, float] = field(factory=dict)
    dead: list[Node] = field(factory=list)
    """The dead nodes that had a seat at the last look, and so until now."""
    heard_at: float = 0.0
    """Since when somebody could hear that another node is silent."""
    led_by: tuple[Life, Node | None] | None = None
    far: bool = False
    """Somebody was out of reach at the last look."""
    marked: bool = False
    """A fault waited for somebody's next message at the last look."""
    waits: bool = False
    """There were too few for a world at the last look, or a drained node was at work."""
    watched: bool = True
    """Somebody with a seat was there to notice a silence at the last look."""
    lengths: Mapping[str, float] = field(init=False)
    """How long each part of a recovery may last."""
    least_s: float = field(init=False)
    """The least of all bounds."""
    reach_s: float = field(init=False)
    dead_s: float = field(init=False)
    """How long a dead node may keep its seat."""

    def __attrs_post_init__(self) -> None:
        self.lengths, self.reach_s = lengths(self.setting), _reach(self.setting)
        self.least_s, self.dead_s = bound(self.lengths, ()), bound_of_the_dead(self.setting)

    def befalls(self, kind: Kind) -> None:
        """Note that this befalls the world now."""
        now = self.future.now
        self.is_open, self.calm_at = True, max(self.calm_at, now)
        self.kinds.add(kind)
        if kind.row.deafens:
            self.heard_at = max(self.heard_at, now)

    def heals(self) -> None:
        """Note that all faults are over."""
        self.calm_at = max(self.calm_at, self.future.now)

    def moved(self) -> None:
        """Look at the world after something changed. Raises Violation."""
        now, register = self.future.now, self.store.register
        if self.is_open and self.rests_at is not None and self.calm_at < now and not (self.far or self.waits):
            took = max(self.rests_at - self.calm_at, 0.0)
            self._is_over(took, bound(self.lengths, self.kinds))  # it rested until now
        living = [each for each in self.by_node.values() if each.alive and each.agent.group.phase is not Phase.ENDED]
        if self._rests(register, living):
            self.rests_at = now if self.rests_at is None else self.rests_at
        else:
            self.rests_at = None
            if not self.is_open:
                self.is_open, self.calm_at = True, max(self.calm_at, now)
        if not self.is_open:
            return
        self._sees(living, now)
        if register is None or register.closed:
            self.dead = []
        else:
            self._judges_the_dead(register, living, now)
        if self.calm_at > now:
            return
        took = max((now if self.rests_at is None else self.rests_at) - self.calm_at, 0.0)
        if took <= self.least_s and self.rests_at is None:
            return
        may = bound(self.lengths, self.kinds)
        if took > may:
            state = standing(register) if register else "no register []"
            what = ", ".join(sorted(kind.value for kind in self.kinds)) or "no fault"
            raise Violation("L9", f"no rest {took:.2f} s after {what}, at most {may:g} s: {state}")
        if self.rests_at is not None:
            self._is_over(took, may)

    def _is_over(self, took: float, may: float) -> None:
        self.over.append(Recovery(frozenset(self.kinds), took, may, self.future.now))
        self.strength.armed["L9"] += took > 0
        self.is_open = False
        self.kinds.clear()

    def _judges_the_dead(self, register: RendezvousState, living: list[Process], now: float) -> None:
        if not self.watched:
            self.heard_at = max(self.heard_at, now)
        if self.dead and (kept := now - max(self.heard_at, *(self.died_at[node] for node in self.dead))) > self.dead_s:
            raise Violation("L10", f"{', '.join(map(str, self.dead))} died {kept:.2f} s ago: {standing(register)}")
        by = register.life, register.first
        self.watched = any(each.node in register.seats and each.group.phase is not Phase.LEAVING for each in living)
        self.watched = self.watched and not self._is_slow_to_return(register)
        if by != self.led_by or not self.watched:
            self.led_by, self.heard_at = by, max(self.heard_at, now)
        self.dead = self._dead(register)
        for node in self.dead:
            if node not in self.died_at:
                self.died_at[node] = now
                self.befalls(Kind.CRASH)  # an agent that ends while it is seated is no better
                self.strength.armed["L10"] += 1
                self.strength.excused["L10"] += not self.watched

    def _sees(self, living: list[Process], now: float) -> None:
        """Note which faults are under way, and which wait for their time."""
        until, staying = max(self.store.down_until, self.store.full_until), list[str]()
        far = marked = waits = False
        late = 0.0  # what was sent to a slow node comes so late, also when it is slow no longer
        for each in living:
            group, trouble = each.group, each.trouble
            waits = waits or (group.deadline is not None and group.phase in _AT_WORK)  # drained, and still at work
            if group.phase is not Phase.LEAVING:
                staying.append(each.node.slot)
            if not trouble.lasts:
                continue
            ends = max(each.stalls.over_at, trouble.cut_until, trouble.refuses_until)
            until = max(until, ends)
            is_far = trouble.delay > self.reach_s
            far = far or each.stalls.unnoticed_since is not None or is_far
            late = max(late, now + trouble.delay) if is_far else late
            if trouble.marks:
                self.kinds.update(trouble.marks)
                marked = marked or trouble.delays > 0
            else:
                trouble.lasts = ends > now or each.stalls.unnoticed_since is not None
        waits = waits or self.setting.are_too_few(staying)
        self.heard_at = max(self.heard_at, until, late, now if far or self.far or marked or self.marked else 0.0)
        self.calm_at = max(self.calm_at, until, now if far or waits or self.far or self.waits else 0.0)
        self.far, self.waits, self.marked = far, waits, marked  # until now, if they no longer are

    def _rests(self, register: RendezvousState | None, living: list[Process]) -> bool:
        if register is None or register.closed:
            return not living
        if not register.complete or not all(is_in_place(register, each) for each in living):
            return False
        return self.store.here and not self._dead(register)  # a copy is yet to be restored

    def _is_slow_to_return(self, register: RendezvousState) -> bool:
        """Return True if the coordinator is slow, and on its way back: each of its questions on the way takes its time."""
        first = register.first
        if first is None or register.seats[first].status is not Status.EXPECTED:
            return False
        return (each := self.by_node.get(first)) is not None and each.trouble.delay > 0

    def _dead(self, register: RendezvousState) -> list[Node]:
        """Return the dead nodes that have a seat."""
        return [node for node in register.present if (each := self.by_node.get(node)) is not None and not each.alive]


_AT_WORK = (Phase.RUNNING, Phase.BARRIER)


def is_in_place(register: RendezvousState, process: Process) -> bool:
    """Return True if the node runs in the complete world of this register, or is a spare there that makes no whole unit."""
    seat = register.seats.get(process.node)
    if seat is not None and seat.status is Status.ABSENT:
        return True  # its round goes on without this reserve, and calls it at the end
    if seat is None or seat.status in (Status.WAITING, Status.ASIDE):
        is_spare = seat is not None and process.node in register.redundancy_list
        return is_spare and not is_idle(register, process.node)
    ran = process.attempt.world
    return ran is not None and ran.id == register.world_id and process.group.phase in _AT_WORK
