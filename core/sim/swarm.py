"""Random runs: each draws a setting and its own mix of faults, then one operation after the other, as fits the world.

Swarm testing (Groce et al., 2012): a run that leaves out most kinds of faults goes deeper into the others than a run with a
bit of everything. The draw is written down as a story, so that a run can be told again and made smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from ..group.state import HEARD_S
from ..rendezvous.state import NODES_MAX, Limits
from ..values import frozen
from .chance import Choose, one
from .features import FEATURES, LONG_S, SLOWER, featured
from .kinds import GAPS_S, Kind, Needs, On, Pool, pool
from .simulation import World
from .story import PROGRESS_BEATS, Backend, Operation, Setting, parsed_operation

DRAWN = tuple(kind for kind in Kind if kind.row.pool)
"""All operations that may be drawn."""
ONE_IN: Mapping[Pool, int] = {
    Pool.RARE: 80,
    Pool.STRANGE: 30,
    Pool.LOSSES: 12,
    Pool.LINKS: 6,
    Pool.NOTICES: 7,
    Pool.CHECKS: 12,
}
"""One operation in this many is of this pool, in runs that have it at all. The others are common ones."""
LOSSES_MAX = 3
"""The most losses in one run."""
VERDICTS_LOST_ONE_IN = 6
"""One run in this many ends with a verdict that the store loses at once."""
LINGERS_S = (0.001, 0.003, 0.02)
"""How long after an operator's cancel, or after the last look, the store loses its memory."""
LAST, LOOKS = 2, 20
"""How many operations such an end takes, and the lingers after which the store loses the verdict, whoever knows it."""
LONG_GAPS = 3
"""This many times as long are the gaps there: minutes of heartbeats in which nothing happens cost much and show little."""
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
HOURS_ONE_IN, HOURLY = 4, 30
"""There one gap in this many is longer, by this factor."""
WORKERS_MOST = 2
"""This many workers a node has at most, where nodes are alike."""
WEIGHTS = (0, 0, 1, 4)


@frozen
class Shape:
    """What a user wants of the runs; None means drawn."""

    nodes: int = 5
    min: int | None = None
    max: int | None = None
    backend: Backend | None = None
    faults: frozenset[Kind] = frozenset(DRAWN)
    operations: int = 40
    """The most operations; each run has a budget of its own."""
    features: frozenset[str] = frozenset()
    """Each world has these features. Others are drawn."""

    def __attrs_post_init__(self) -> None:
        if others := sorted(self.faults - {*DRAWN}, key=str):
            raise ValueError(f"faults: {', '.join(map(str, others))}: none of DRAWN, as Kind.CRASH is")
        if unknown := sorted(self.features - {*FEATURES}):
            raise ValueError(f"features: {', '.join(unknown)}: none of FEATURES ({', '.join(FEATURES)})")
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
    drawn = Setting(
        nodes=shape.nodes,
        limits=Limits(least, most, one(choose, (0, 1, 3, 8))),
        workers=1 + choose(WORKERS_MOST),
        backend=shape.backend or one(choose, tuple(Backend)),
        seed=1 + choose(2**32),
        drift=one(choose, (0.0, 1e-4, 1e-2)),
        attempts=one(choose, (5, 5, 3)),
        last_call=one(choose, (0.0, 0.5, 2.0)),
        join=one(choose, (15.0, 60.0)),
        overdue=one(choose, (8.0, 12.0)),
        upscale=one(choose, (0.0, 1.0)),
        grace=one(choose, (1.0, 3.0)),
        notices=0,
    )
    sized = shape.min is not None or shape.max is not None
    return featured(choose, drawn, shape.faults < frozenset(DRAWN), shape.features, sized)


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
    knowing: int = field(init=False)
    """The run ends with a verdict that the store loses once this many nodes know it. 0: it does not."""
    looks: int = 0
    """How often it is still looked how many do."""
    left: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.bag = [kind for kind in self._wanted(Pool.COMMON) for _ in range(one(self.choose, WEIGHTS))]
        self.rare = self.choose(2) == 1
        self.strange = bool(self.shape.faults & {*pool(Pool.STRANGE)}) and self.choose(3) == 0
        self.losses = self.choose(LOSSES_MAX + 1) if self.choose(2) else 0
        most, faults = self.shape.operations, self.shape.faults
        may_lose = most >= LAST and Kind.CANCEL in faults and not faults.isdisjoint(pool(Pool.LOSSES))
        self.knowing = 1 + self.choose(2) if may_lose and self.choose(VERDICTS_LOST_ONE_IN) == 0 else 0
        most -= LAST if self.knowing else 0
        least = min(5, most)
        self.left = least + self.choose(most - least + 1)

    def _wanted(self, of: Pool) -> Sequence[Kind]:
        return [kind for kind in pool(of) if kind in self.shape.faults] or [Kind.PASS]

    def operations(self, world: World) -> Sequence[Operation]:
        """Return what is done next; empty when the budget is spent."""
        if self.left <= 0:
            return self._last(world) if self.knowing else ()
        self.left -= 1
        if self.choose(12) == 0:
            return self._burst(world)
        gap = self._gap(world)
        done = self._one(world)
        if done.kind is Kind.CANCEL and self.losses:
            self.losses -= 1
            return done, self._lingers(), self._loses(world), gap
        return (done, gap) if self.choose(4) else (done,)

    def _last(self, world: World) -> Sequence[Operation]:
        """Cancel the job, and let the store lose that as soon as enough nodes know it."""
        if not self.looks:
            self.looks = LOOKS
            return Operation(Kind.CANCEL), self._lingers()
        self.looks -= 1
        know = [each for each in world.living() if each.held.view.state is not None and each.held.view.state.closed]
        if len(know) < self.knowing and self.looks:
            return (self._lingers(),)
        self.knowing = 0
        return (self._loses(world),)

    def _lingers(self) -> Operation:
        return Operation(Kind.PASS, span=one(self.choose, LINGERS_S))

    def _loses(self, world: World) -> Operation:
        return self._to(world, one(self.choose, self._wanted(Pool.LOSSES)))

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
        setting = world.setting
        has = {
            Pool.RARE: self.rare,
            Pool.STRANGE: self.strange,
            Pool.LOSSES: self.losses > 0,
            Pool.LINKS: setting.links > 0,
            Pool.NOTICES: setting.notices > 0,
            Pool.CHECKS: setting.checks > 0,
        }
        for of, one_in in ONE_IN.items():
            if has[of] and self.choose(one_in) == 0:
                self.losses -= of is Pool.LOSSES
                return self._to(world, one(self.choose, self._wanted(of)))
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
        self.losses -= sum(each.kind.row.pool is Pool.LOSSES for each in drawn)
        waits = Operation(Kind.PASS, span=GAPS_S[0])
        return [each for each in drawn if each.kind in self.shape.faults or each.kind is Kind.PASS] or [waits]

    def _to(self, world: World, kind: Kind) -> Operation:
        slot = self._slot(world, kind) if kind.takes_node else ""
        span = one(self.choose, kind.row.spans) if kind.takes_span else 0.0
        span = span * _slower(world.setting) if kind.row.slowed else span
        return Operation(kind, slot, min(span, world.setting.join / 2) if kind is Kind.PAUSE_LOOP else span)

    def _slot(self, world: World, kind: Kind) -> str:
        """Choose a slot on which the operation has an effect, if there is one."""
        slots = world.setting.slots
        if kind.row.needs in (Needs.WORK, Needs.WORKERS):
            slots = tuple(slot for slot in slots if (at := world.at(slot)) and at.workers) or slots
        elif kind.row.on is On.NODE:
            slots = tuple(slot for slot in slots if world.at(slot)) or slots
        return one(self.choose, slots)


def _bursts_of(setting: Setting, slot: str, losses: int) -> Iterator[str]:
    """Yield the bursts that only such a world has. `slot` is that of {1}; the store may be lost this often."""
    if losses:
        yield "older 3; start {1}; pass 0.02"
        yield "crash {1}; empty; fail {0}; pass 0.02; start {1}"
        yield "fail {0}; crash {1}; outage 0.5; pass 0.3; empty; pass 0.5; start {1}"
    if setting.hang:
        found = f"pass {5 * setting.hang + 9:g}"
        yield f"hang {{0}}; {found}"
        yield f"hang {{0}}; full {1.5 * setting.hang:g}; {found}"
        yield f"hang {{0}}; pass {0.75 * setting.hang:g}; pause {{1}} 4; {found}"
    if setting.codes:
        yield "fail {0}; fail {0}; fail {0}"
        yield f"fail {{0}}; fail {{0}}; fail {{0}}; pass {HEARD_S + 2:g}"
    if setting.shutdown:
        yield f"hang {{0}}; drain {{0}}; pass {setting.shutdown:g}"
    if setting.limits.give_up_after:
        yield "crash {1}; start {1}; pass 2.02; crash {1}; start {1}; pass 2.02"
        yield f"crash {{1}}; start {{1}}; pass {(PROGRESS_BEATS + 2) * setting.interval:g}; crash {{1}}; start {{1}}"
        yield "crash {1}; pass 6; start {1}; pass 2.02; crash {1}; pass 6; start {1}; pass 2.02"
        yield "crash {1}; pass 6; advance {0}; start {1}; pass 2.02; crash {1}; pass 6; advance {0}; pass 1"
        yield "crash {1}; pass 6; hang {0}; start {1}; pass 2.02; crash {1}; pass 6"
    if setting.party > 1:
        first = setting.slots.index(slot) // setting.party * setting.party
        crashes = "; ".join(f"crash {each}" for each in setting.slots[first : first + setting.party])
        yield f"{crashes}; pass 8; start {{1}}; pass 8"


def _slower(setting: Setting) -> float:
    """Return how many times as long all but messages takes in this world."""
    return setting.interval if setting.join < LONG_S else SLOWER
