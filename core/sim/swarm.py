"""Random runs: each draws a setting and its own mix of faults, then one operation after the other, as fits the world.

Swarm testing (Groce et al., 2012): a run that leaves out most kinds of faults goes deeper into the others than a run with a
bit of everything. The draw is written down as a story, so that a run can be told again and made smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from ..rendezvous.state import NODES_MAX
from .chance import Choose, one
from .simulation import World
from .story import Backend, Kind, Operation, Setting, parsed_operation

FAULTS: Mapping[Kind, tuple[float, ...]] = {
    Kind.CRASH: (0.0,),
    Kind.PAUSE: (0.5, 2.5, 4.0, 7.0, 15.0),
    Kind.KILL: (0.05, 0.5, 1.0, 3.0),
    Kind.PAUSE_HEART: (2.5, 4.0, 7.0, 15.0),
    Kind.PAUSE_LOOP: (0.5, 2.5, 7.0, 15.0),
    Kind.PAUSE_WAITER: (0.3, 2.5, 7.0, 15.0),
    Kind.SLOW: (0.0, 0.1, 0.6, 1.5),
    Kind.CUT: (0.5, 3.0, 6.5, 12.0),
    Kind.CUT_OUT: (1.0, 4.0, 8.0),
    Kind.CUT_IN: (1.0, 4.0, 8.0),
    Kind.LOSE_REPLY: (0.0,),
    Kind.LATE_WRITE: (0.05, 1.0, 3.0, 8.0),
    Kind.LATE_REPLY: (0.05, 0.5, 1.5, 3.0),
    Kind.TWICE: (0.01, 0.5, 3.0, 12.0),
    Kind.GAP: (0.0,),
    Kind.OUTAGE: (0.5, 3.0, 8.0),
    Kind.FULL: (0.5, 3.0, 8.0),
    Kind.FAIL: (0.0,),
    Kind.SUCCEED: (0.0,),
    Kind.HANG: (0.0,),
    Kind.DRAIN: (0.0,),
    Kind.START: (0.0,),
}
"""Common faults, and how long each may last."""
RARE: tuple[Kind, ...] = (Kind.UNSTARTABLE, Kind.CANCEL)
"""Operations that end a job."""
STRANGE: tuple[Kind, ...] = (Kind.START_BACK, Kind.START_OTHER, Kind.START_STRANGER, Kind.START_NEXT)
"""Starts of agents that the job does not take, or not at once."""
LOSSES: Mapping[Kind, tuple[float, ...]] = {Kind.EMPTY: (0.0,), Kind.OLDER: (0.01, 0.5, 3.0, 12.0, 60.0)}
"""Operations that take the store's memory, and how much of it (seconds back)."""
LOSSES_MAX = 3
"""At most so many losses in one run."""
LINK_FAULTS: Mapping[Kind, tuple[float, ...]] = {
    Kind.UNLINK: (0.0,),
    Kind.REFUSE: (0.05, 1.0, 6.0),
    Kind.MUTE: (0.5, 4.0, 12.0),
}
"""Faults of worlds whose nodes keep links, which are every second one."""
LINK_FAULTS_ONE_IN = 6
NOTICES: Mapping[Kind, tuple[float, ...]] = {Kind.NOTICE: (0.5, 3.0, 8.0, 20.0)}
"""Notices of worlds whose nodes are drained, which are every third one."""
NOTICED_ONE_IN, NOTICES_ONE_IN = 3, 10
CHECK_FAULTS: tuple[Kind, ...] = (Kind.UNFIT, Kind.UNFIT, Kind.HANG_CHECK, Kind.BREAK_CHECK)
"""Faults of worlds whose nodes have a check, which are every fourth one."""
CHECKED_ONE_IN, CHECK_FAULTS_ONE_IN = 4, 12
PARTIES_ONE_IN, PARTY_WAIT_S = 5, 3.0
"""So many runs have nodes that come in parties, and wait for so long for the rest of theirs."""
RESERVES_ONE_IN = 4
"""So many runs have worlds with reserves."""
DRAWN: tuple[Kind, ...] = (*FAULTS, *RARE, *STRANGE, *LOSSES, *LINK_FAULTS, *NOTICES, *dict.fromkeys(CHECK_FAULTS))
"""All operations that may be drawn."""
RARELY = 80
"""One operation in so many, in runs that have rare ones at all."""
LOSSES_ONE_IN = 12
LINGERS_S = (0.001, 0.003, 0.02)
"""How long after an operator's cancel the store loses its memory."""
STRANGE_ONE_IN = 30
"""One operation in so many, in every third run."""
TAILED_ONE_IN, TAILS_S = 5, (0.5, 3.0)
"""So many runs have messages of which a few are very late."""
UNLIKE_ONE_IN = 4
"""So many runs have nodes of several sizes and roles."""
ALONE_ONE_IN, ALONE_MOST = 7, 2
"""In so many runs workers restart alone, each node's up to so often."""
TARGETED_ONE_IN = 7
"""In so many runs the first round waits for a number of nodes that is not the maximum."""
NAMED_ONE_IN = 2
"""In so many runs nodes say which program their workers run."""
STANDBYS_ONE_IN, STANDBYS_S = 5, (0.3, 3.0)
"""So many runs have standbys, and they take so long at most to get ready."""
LONG_ONE_IN = 53
"""So many runs have joins of 600 s, and outages and pauses of minutes, at a second's heartbeat."""
LONG_GAPS = 3
"""So many times as long are the gaps there: minutes of heartbeats in which nothing happens cost much and show little."""
FAILING_ONE_IN, WINDOWS_S, STRICT_RESTARTS = 3, (8.0, 30.0), 3
"""So many runs have nodes that are set aside after one or two failures in a window, and restarts enough for that."""
HELPS_ONE_IN = 4
"""So many runs have nodes that propose where two of them have the same to write; worlds of many nodes always do."""
BURSTS = (
    "start {0}; late-write {0} 3; pass 0.3; drain {0}",
    "start {0}; late-write {0} 8; pass 2.02; crash {0}",
    "late-write {0} 3; fail {0}; pass 2.02; crash {0}",
    "fail {0}; crash {1}; pass 0.02; start {1}",
    "fail {0}; pass 0.02; crash {1}; pass 6; start {1}",
    "fail {0}; fail {1}",
    "succeed {0}; pass 0.3; crash {0}",
)
"""Operations that go together: each alone is drawn often, one right after the other hardly ever."""
PATIENT_ONE_IN = 51
"""So many runs have spares that wait for hours, joins of 600 s, and outages and pauses of minutes."""
PATIENT_S = 600.0
SLOWER = 20
"""So many times as long all but messages take in those runs."""
HOURS_ONE_IN, HOURLY = 4, 30
"""There one gap in so many is so many times as long again."""
SLOWED: tuple[Kind, ...] = (
    *(Kind.PAUSE, Kind.PAUSE_HEART, Kind.PAUSE_LOOP, Kind.PAUSE_WAITER, Kind.CUT, Kind.CUT_OUT, Kind.CUT_IN),
    *(Kind.REFUSE, Kind.MUTE, Kind.FULL, Kind.OUTAGE, Kind.OLDER, Kind.PASS, Kind.NOTICE),
)
WORKERS_MOST = 2
"""So many workers a node has at most, where nodes are alike."""
WEIGHTS = (0, 0, 1, 4)
GAPS_S = (0.001, 0.02, 0.02, 0.3, 1.0, 2.5, 6.0)
"""Seconds between two operations."""


@frozen
class Shape:
    """What a user wants of the runs; None means drawn."""

    nodes: int = 5
    min: int | None = None
    max: int | None = None
    backend: Backend | None = None
    faults: frozenset[Kind] = frozenset(DRAWN)
    operations: int = 40
    """At most so many operations; each run has a budget of its own."""

    def __attrs_post_init__(self) -> None:
        if others := sorted(self.faults - {*DRAWN}, key=str):
            raise ValueError(f"faults: {', '.join(map(str, others))}: none of DRAWN, as Kind.CRASH is")
        if not 1 <= self.nodes <= NODES_MAX:
            raise ValueError(f"nodes: 1 to {NODES_MAX}, not {self.nodes}")
        if not 0 <= self.operations < math.inf:
            raise ValueError(f"operations: 0 or more, not {self.operations}")
        if self.min is not None and not 1 <= self.min <= min(self.nodes, self.max or self.nodes):
            raise ValueError(f"min: 1 to {min(self.nodes, self.max or self.nodes)}, not {self.min}")
        if self.max is not None and not 1 <= self.max <= NODES_MAX:
            raise ValueError(f"max: 1 to {NODES_MAX}, not {self.max}")


def setting(choose: Choose, shape: Shape) -> Setting:
    """Draw a setting that the settings' own rules allow."""
    low = shape.min or 1
    most = shape.max or low + choose(shape.nodes - low + 1)
    least = shape.min or 1 + choose(min(most, shape.nodes))
    attempts = one(choose, (5, 5, 3))
    fenced = attempts == 5 and choose(2) == 1
    drawn = Setting(
        nodes=shape.nodes,
        min=least,
        max=most,
        restarts=one(choose, (0, 1, 3, 8)),
        workers=1 + choose(WORKERS_MOST),
        backend=shape.backend or one(choose, tuple(Backend)),
        seed=1 + choose(2**32),
        drift=one(choose, (0.0, 1e-4, 1e-2)),
        attempts=attempts,
        last_call=one(choose, (0.0, 0.5, 2.0)),
        join=one(choose, (15.0, 60.0)),
        overdue=one(choose, (8.0, 12.0)),
        upscale=one(choose, (0.0, 1.0)),
        barrier=one(choose, (0.0, 0.0, 2.0)),
        grace=one(choose, (1.0, 3.0)),
        fence=3.0 if fenced else 0.0,
    )
    drawn = evolve(drawn, links=drawn.seed % 2)
    helped = drawn if drawn.seed % HELPS_ONE_IN else evolve(drawn, helping=1)
    helped = _strict(helped)
    if shape.faults >= frozenset(DRAWN):
        helped = _unkind(helped)
    if shape.faults & {*CHECK_FAULTS}:
        helped = evolve(helped, checks=int(helped.seed % CHECKED_ONE_IN == 2))
    return helped if drawn.seed % PATIENT_ONE_IN else _patient(helped)


def _strict(drawn: Setting) -> Setting:
    """Return the setting of a world that sets failing nodes aside, in some runs."""
    number = drawn.seed // FAILING_ONE_IN
    if drawn.seed % FAILING_ONE_IN != 2:
        return drawn
    return evolve(
        drawn,
        node_failures=1 + (number % 4 == 3),
        window=WINDOWS_S[number // 4 % len(WINDOWS_S)],
        restarts=max(drawn.restarts, STRICT_RESTARTS),
    )


def _unkind(drawn: Setting) -> Setting:
    """Return the setting of a world that has more than faults: other messages, nodes and spans."""
    seed = drawn.seed
    if seed % TAILED_ONE_IN == 1:
        drawn = evolve(drawn, tail=TAILS_S[seed // TAILED_ONE_IN % len(TAILS_S)])
    if seed % UNLIKE_ONE_IN == 1:
        drawn = evolve(drawn, unlike=2 + seed // UNLIKE_ONE_IN % 2)
    if seed % PARTIES_ONE_IN == 2:
        drawn = evolve(drawn, party=2 + seed // PARTIES_ONE_IN % 2, party_wait=PARTY_WAIT_S)
    if seed % RESERVES_ONE_IN == 3:
        drawn = evolve(drawn, reserves=1 + seed // RESERVES_ONE_IN % 2)
    if seed % ALONE_ONE_IN == 1:
        drawn = evolve(drawn, alone=1 + seed // ALONE_ONE_IN % ALONE_MOST)
    if seed % TARGETED_ONE_IN == 3:
        drawn = evolve(drawn, first_target=drawn.min + seed // TARGETED_ONE_IN % (drawn.max - drawn.min + 1))
    if seed % STANDBYS_ONE_IN == 3:
        drawn = evolve(drawn, standbys=STANDBYS_S[seed // STANDBYS_ONE_IN % len(STANDBYS_S)])
    drawn = evolve(drawn, named=int(seed // 3 % NAMED_ONE_IN == 1))
    return evolve(drawn, join=600.0) if seed % LONG_ONE_IN == 1 else drawn


def _patient(drawn: Setting) -> Setting:
    return evolve(
        drawn,
        interval=drawn.interval * SLOWER,
        join=600.0,
        last_call=drawn.last_call * SLOWER,
        overdue=drawn.overdue * SLOWER,
        upscale=drawn.upscale * SLOWER,
        barrier=drawn.barrier * SLOWER,
        fence=drawn.fence * SLOWER,
        window=drawn.window * SLOWER,
    )


@define
class Swarm:
    """The mix of one run."""

    choose: Choose
    shape: Shape
    bag: list[Kind] = field(init=False)
    rare: bool = field(init=False)
    strange: bool = field(init=False)
    losses: int = field(init=False)
    """How often the store may still lose its memory."""
    left: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.bag = [kind for kind in self._wanted(FAULTS) for _ in range(one(self.choose, WEIGHTS))]
        self.rare = self.choose(2) == 1
        self.strange = bool(self.shape.faults & {*STRANGE}) and self.choose(3) == 0
        self.losses = self.choose(LOSSES_MAX + 1) if self.choose(2) else 0
        least = min(5, self.shape.operations)
        self.left = least + self.choose(self.shape.operations - least + 1)

    def _wanted(self, kinds: Iterable[Kind]) -> Sequence[Kind]:
        return [kind for kind in kinds if kind in self.shape.faults] or [Kind.PASS]

    def operations(self, world: World) -> Sequence[Operation]:
        """Return what is done next; empty when the budget is spent."""
        if self.left <= 0:
            return ()
        self.left -= 1
        if self.choose(12) == 0:
            return self._burst(world)
        gap = self._gap(world)
        done = self._one(world)
        if done.kind is Kind.CANCEL and self.losses:
            self.losses -= 1
            lost = self._to(world, one(self.choose, self._wanted(LOSSES)))
            return done, Operation(Kind.PASS, span=one(self.choose, LINGERS_S)), lost, gap
        return (done, gap) if self.choose(4) else (done,)

    def first(self, world: World) -> Sequence[Operation]:
        """Start most nodes at once."""
        slots = [slot for slot in world.setting.slots if self.choose(8)]
        return (*(Operation(Kind.START, slot) for slot in slots), self._gap(world))

    def _gap(self, world: World) -> Operation:
        patient = world.setting.interval > 1.0
        slower = world.setting.interval if patient else min(_slower(world.setting), LONG_GAPS)
        span = one(self.choose, GAPS_S) * slower
        return Operation(Kind.PASS, span=span * HOURLY if patient and self.choose(HOURS_ONE_IN) == 0 else span)

    def _one(self, world: World) -> Operation:
        if self.rare and self.choose(RARELY) == 0:
            return self._to(world, one(self.choose, self._wanted(RARE)))
        if self.strange and self.choose(STRANGE_ONE_IN) == 0:
            return self._to(world, one(self.choose, self._wanted(STRANGE)))
        if self.losses and self.choose(LOSSES_ONE_IN) == 0:
            self.losses -= 1
            return self._to(world, one(self.choose, self._wanted(LOSSES)))
        if world.setting.links and self.choose(LINK_FAULTS_ONE_IN) == 0:
            return self._to(world, one(self.choose, self._wanted(LINK_FAULTS)))
        if world.setting.seed % NOTICED_ONE_IN == 1 and self.choose(NOTICES_ONE_IN) == 0:
            return self._to(world, one(self.choose, self._wanted(NOTICES)))
        if world.setting.checks and self.choose(CHECK_FAULTS_ONE_IN) == 0:
            return self._to(world, one(self.choose, self._wanted(CHECK_FAULTS)))
        absent = [slot for slot in world.setting.slots if world.at(slot) is None]
        if absent and Kind.START in self.shape.faults and self.choose(6) == 0:
            return Operation(Kind.START, one(self.choose, absent))
        return self._to(world, one(self.choose, self.bag or (Kind.PASS,)))

    def _burst(self, world: World) -> Sequence[Operation]:
        """Return the operations of a burst that the shape allows."""
        those = (self._slot(world, Kind.FAIL), self._slot(world, Kind.CRASH))
        lines = (
            one(self.choose, (*BURSTS, *_bursts_of(world.setting, those[1], self.losses))).format(*those).split("; ")
        )
        drawn = [parsed_operation(line) for line in lines]
        self.losses -= sum(each.kind in LOSSES for each in drawn)
        waits = Operation(Kind.PASS, span=GAPS_S[0])
        return [each for each in drawn if each.kind in self.shape.faults or each.kind is Kind.PASS] or [waits]

    def _to(self, world: World, kind: Kind) -> Operation:
        slot = self._slot(world, kind) if kind.takes_node else ""
        span = (
            one(self.choose, {**FAULTS, **LOSSES, **LINK_FAULTS, **NOTICES}.get(kind, GAPS_S))
            if kind.takes_span
            else 0.0
        )
        span = span * _slower(world.setting) if kind in SLOWED else span
        return Operation(kind, slot, min(span, world.setting.join / 2) if kind is Kind.PAUSE_LOOP else span)

    def _slot(self, world: World, kind: Kind) -> str:
        """Choose a slot on which the operation has an effect, if there is one."""
        slots = world.setting.slots
        if kind in (Kind.FAIL, Kind.SUCCEED, Kind.HANG):
            slots = tuple(slot for slot in slots if (at := world.at(slot)) and at.workers) or slots
        elif kind is not Kind.START and kind not in STRANGE:
            slots = tuple(slot for slot in slots if world.at(slot)) or slots
        return one(self.choose, slots)


def _bursts_of(setting: Setting, slot: str, losses: int) -> Iterator[str]:
    """Yield the bursts that only such a world has. `slot` is that of {1}; the store may be lost so often."""
    if losses:
        yield "older 3; start {1}; pass 0.02"
    if setting.party > 1:
        first = setting.slots.index(slot) // setting.party * setting.party
        crashes = "; ".join(f"crash {each}" for each in setting.slots[first : first + setting.party])
        yield f"{crashes}; pass 8; start {{1}}; pass 8"


def _slower(setting: Setting) -> float:
    """Return how many times as long all but messages takes in this world."""
    return setting.interval if setting.join < PATIENT_S else SLOWER
