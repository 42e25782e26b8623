"""The time of a run of calls in which each step takes time: user code, abort, questions to the store, pauses of hosts.

Most steps take about their usual time; a few take very much longer. A driver's limits pass by the core's own `timers`,
and a monitor process acts by the core's own `monitoring`. What is planned for the earliest time comes next. `time_laws`
judges what the two decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from operator import is_

from attrs import define, field

from ...inprocess import timers as of_driver
from ...inprocess.monitoring import Monitor, Phase, Rules, step, until, woke
from ...inprocess.timers import IDLE, Timers
from ...inprocess.words import Span
from ...properties.law import Strength
from ...rendezvous import RendezvousState
from ...values import evolve
from ...violation import Violation
from ..chance import Choose, one
from .call_world import Note, Rank, World
from .monitor_sight import marks, moves_of, sight
from .moves import Move, prompt_of, timed_of
from .time_laws import STAMPS, TimeLaws

USUAL_S: Mapping[str, float] = {
    "main thread ends": 0.05,
    "main thread leaves the section": 0.2,
    "main thread is signalled": 1e-4,
    "driver hears": 1e-4,
    "driver asks": 2e-3,
    "abort ends": 0.05,
    "monitor starts again": 0.03,
    "has time again": 60.0,
    "is reached again": 2.0,
    "driver asks late": 100.0,
    "driver is too late": 600.0,
    "gives the store up": 600.0,
    "a late write arrives": 4.0,
    "monitor waits no longer": 2.0,
}
"""What each step takes, from a quarter of this to twice this. A step that is not listed takes QUICK_S."""
QUICK_S = 1e-5
FUNCTION_S = 2.0
LONG_S = (0.3, 2.0, 8.0, 31.0, 45.0, 61.0, 95.0, 130.0, 250.0, 700.0)
"""What a step takes that takes long, and how long a host stands still."""
LONG_ONE_IN = 60
NEVER_LONG = frozenset({"driver asks late", "driver is too late", "gives the store up", "monitor waits no longer"})
"""Steps that stand for the end of the register's own spans."""
SAID = frozenset({"monitor ends", "monitor leaves"})
"""What the monitor tells the register in the name of a process that lives: that takes as long as any question."""
OF_MONITOR = frozenset({"monitor wants", "monitor signals again", *SAID})
SPOKEN = frozenset({"monitor speaks", "monitor waits no longer"})
"""What it tells the register of a process that does not speak any longer."""
LOOKS_MAX = 1_000
"""This many looks in a row after which nothing is done are too many."""


@define
class Clock:
    """The time of one rank: what its process and its monitor do next, and when."""

    due: dict[Move, float] = field(factory=dict)
    timers: Timers = IDLE
    monitor: Monitor = Monitor()
    looks_at: float = 0.0
    """When the monitor looks next."""
    meant_at: float = 0.0
    """When it meant to look, at the latest."""
    stamp: float = 0.0
    """The last mark of progress."""
    still_until: float = 0.0
    """The host stands still until then."""
    shown: RendezvousState | None = None
    """The last register that the monitor was shown."""
    rings_by: tuple[Rank, Timers, float] | None = None
    """By these values the driver's limits were looked at last: while nothing of them changes, `rings_at` stands."""
    rings_at: float = math.inf


@define
class Clockwork:
    """The time of a run, and what is planned."""

    choose: Choose
    world: World
    rules: Rules
    strength: Strength
    now: float = 0.0
    clocks: list[Clock] = field(factory=list)
    acts: list[Move] = field(factory=list)
    """What monitors do at once."""
    slow: bool = False
    """Some step took long."""
    laws: TimeLaws = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.laws = TimeLaws(self.world, self.rules, self.strength)
        for place, rank in enumerate(self.world.ranks):
            self.clocks.append(Clock(timers=of_driver.running(IDLE, rank.call, 0.0)))
            self._plans(place)

    def next(self) -> Move | None:
        """Return the next move, after the time until then has passed; None if nothing comes any more. Raises Violation."""
        for _ in range(LOOKS_MAX):
            if self.acts:
                act = self.acts.pop(0)
                if act.what == "monitor quits" or self.world.ranks[act.rank].runs:
                    return act
                continue
            at, what, place = min(self._ahead(), default=(math.inf, "", 0))
            if at == math.inf:
                return None
            self.now = max(self.now, at)
            match what:
                case "driver":
                    self._rings(place)
                case "monitor":
                    self._looks(place)
                case _:
                    move = self._first(place)
                    del self.clocks[place].due[move]
                    return move
        raise Violation("I17", f"{LOOKS_MAX} looks in a row, and nothing is done")

    def stands_still(self, place: int) -> Move:
        """Let the host of this rank stand still from now on."""
        clock, pause_s = self.clocks[place], one(self.choose, LONG_S)
        clock.still_until = max(clock.still_until, self.now + pause_s)
        self.laws.stands_still(place, clock.still_until)
        return Move("stands still", place, pause_s)

    def took(self, move: Move, after: World, note: Note) -> World:
        """Note what a move has changed, and return the world, in which something went wrong if a step takes long. Raises
        Violation for a limit that passed too early or too late."""
        before, place = self.world, move.rank
        if self.slow:
            note("takes long")
            self.slow, after = False, evolve(after, clean=False)
        self.world = after
        clock, was, now = self.clocks[place], before.ranks[place], after.ranks[place]
        self.laws.took(before, move, after, self.now)
        if move.what in STAMPS:
            clock.stamp = self.now
        if move.what == "starts again":
            self.clocks[place] = clock = Clock(looks_at=self.now, meant_at=self.now, still_until=clock.still_until)
        if move.what == "monitor starts again":
            clock.monitor, clock.meant_at, clock.shown = Monitor(), self.now, None
        if move.what == "has time again":
            meant_at = of_driver.until(clock.timers, marks(now, clock.stamp))
            clock.timers = of_driver.resumed(clock.timers, meant_at, self.now)
        if now.call is not was.call:
            clock.timers = of_driver.running(clock.timers, now.call, self.now)
        all_change = after.register is not before.register or (was.alive, was.monitor) != (now.alive, now.monitor)
        for each in range(len(after.ranks)) if all_change else (place,):
            self.clocks[each].looks_at = min(self.clocks[each].looks_at, self.now)
            self._shows(self.clocks[each])
            self._plans(each)
        return after

    def _shows(self, clock: Clock) -> None:
        """Show the register to a monitor, if there is one and its host has time."""
        if self.world.register is not None and self.now >= clock.still_until:
            clock.shown = self.world.register

    # --- what is planned

    def _plans(self, place: int) -> None:
        clock, rank = self.clocks[place], self.world.ranks[place]
        moves = [move for move in prompt_of(self.world, place) if move.what not in OF_MONITOR]
        moves += [move for move in timed_of(self.world, place) if move.what in USUAL_S]
        if clock.monitor.phase is not Phase.SPEAK:
            moves = [move for move in moves if move.what not in SPOKEN]
        said = [move for move in clock.due if move.what in SAID and rank.monitor]
        kept = {move: clock.due[move] for move in (*said, *moves) if move in clock.due}
        clock.due = {
            move: kept[move] if move in kept else self.now + self._takes(move, rank) for move in (*said, *moves)
        }

    def _takes(self, move: Move, rank: Rank) -> float:
        if move.what not in NEVER_LONG and not self.choose(LONG_ONE_IN):
            self.slow = True
            return one(self.choose, LONG_S)
        works = move.what == "main thread ends" and rank.main.span is Span.FUNCTION
        usual_s = FUNCTION_S if works else USUAL_S.get(move.what, QUICK_S)
        return usual_s * (1 + self.choose(8)) / 4

    def _first(self, place: int) -> Move:
        due = self.clocks[place].due
        return min(due, key=lambda each: due[each])

    def _ahead(self) -> Iterator[tuple[float, str, int]]:
        """Yield what comes next of each rank: its time, who acts, and the rank."""
        for place, clock in enumerate(self.clocks):
            rank, still = self.world.ranks[place], clock.still_until
            if clock.due:
                yield max(min(clock.due.values()), still), "", place
            if rank.runs and not rank.starved:
                yield max(_rings_at(clock, rank), still), "driver", place
            if rank.monitor and clock.monitor.phase is not Phase.QUIT:
                yield max(clock.looks_at, still), "monitor", place

    def _rings(self, place: int) -> None:
        """Let the driver look at its limits."""
        clock, seen = self.clocks[place], marks(self.world.ranks[place], self.clocks[place].stamp)
        timers = of_driver.resumed(clock.timers, of_driver.until(clock.timers, seen), self.now)
        clock.timers, events = of_driver.passed(timers, self.now, seen)
        self.acts += [Move("time passes", place, each.deadline) for each in events]

    def _looks(self, place: int) -> None:
        """Let the monitor look."""
        clock, rank = self.clocks[place], self.world.ranks[place]
        self._shows(clock)
        self.laws.looks(self.world, place, self.now)
        seen = sight(self.world, place, clock.stamp, clock.timers, clock.shown)
        awake = woke(clock.monitor, seen, clock.meant_at, self.now)
        was, (clock.monitor, acts) = clock.monitor, step(awake, seen, self.now, self.rules)
        clock.looks_at = clock.meant_at = until(clock.monitor, seen, self.rules)
        for move in moves_of(place, rank, acts):
            self.laws.acts(self.world, move, self.now)
            if move.what in SAID:
                clock.due[move] = self.now + self._takes(Move("driver asks", place), rank)
            else:
                self.acts.append(move)
        if clock.monitor.phase is not was.phase:
            self._plans(place)


def _rings_at(clock: Clock, rank: Rank) -> float:
    """Return when the driver of this rank has to look at its limits."""
    about = rank, clock.timers, clock.stamp
    if clock.rings_by is None or not all(map(is_, clock.rings_by, about)):
        clock.rings_by, clock.rings_at = about, of_driver.until(clock.timers, marks(rank, clock.stamp))
    return clock.rings_at
