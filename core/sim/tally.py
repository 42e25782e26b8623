"""The sum of many runs: how much was done, what was seen how often, what was broken.

A run is reduced to a `Showed`, which is small and can be sent from another process. A `Tally` adds them up in the order of
the runs, so the result does not depend on the process that ran them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from attrs import define, field

from ..properties.judge import LAWS as JUDGED
from ..properties.law import Strength, by_number, laws_of
from ..values import frozen
from . import (
    agent_laws,
    hang_watches,
    link_laws,
    listening,
    losses,
    lost_worlds,
    memory_laws,
    overlaps,
    owners,
    proposals,
    raises,
    recoveries,
    rendezvous_loops,
    run,
    stack_laws,
    traffic,
    wait_laws,
    witness,
)
from .features import PAIRS, features_of
from .kinds import Kind
from .run import Run
from .simulation import World
from .sometimes import SOMETIMES

LAWS = by_number(
    (
        *JUDGED.values(),
        *laws_of(
            agent_laws,
            hang_watches,
            link_laws,
            listening,
            losses,
            lost_worlds,
            memory_laws,
            overlaps,
            owners,
            proposals,
            raises,
            recoveries,
            rendezvous_loops,
            run,
            stack_laws,
            traffic,
            wait_laws,
            witness,
        ),
    )
)
"""The laws that runs of nodes are held to, by number. The judges of the world have those that no trace can be held to."""


@frozen
class Broken:
    """A violation: its number, and what was wrong."""

    number: str
    fact: str


MANY = "three or more"


@frozen
class Recovered:
    """A recovery, and the run that it was in. `patient`: the heartbeats of its world are more than a second apart."""

    run: int
    took_s: float
    may_s: float
    patient: bool

    @property
    def share(self) -> float:
        """Return how much of its bound it took."""
        return self.took_s / self.may_s


@frozen
class Showed:
    """What one run showed, by the run's number among many."""

    run: int
    steps: int
    writes: int
    rounds: int
    """Rounds that were completed."""
    seconds: float
    """Simulated seconds."""
    done: Mapping[Kind, int]
    counts: Mapping[str, int]
    broken: Broken | None = None
    strength: Strength = field(factory=Strength)
    features: tuple[str, ...] = ()
    """The features of its world."""
    recoveries: tuple[tuple[tuple[str, ...], Recovered], ...] = ()
    """Each with the faults that the world had: up to two kinds by name, or MANY."""


def showed(number: int, run: Run) -> Showed:
    world, violation = run.world, run.violation
    return Showed(
        number,
        world.steps,
        world.writes,
        world.counts["rounds completed"],
        world.future.now,
        dict(world.done),
        {what: world.counts[what] for what in SOMETIMES if world.counts[what]},
        Broken(violation.number, str(violation)) if violation else None,
        world.witness.judge.strength,
        tuple(features_of(world.setting)),
        tuple(_recoveries(number, world)),
    )


def _recoveries(number: int, world: World) -> Iterator[tuple[tuple[str, ...], Recovered]]:
    patient = world.setting.interval > 1
    for each in world.witness.recoveries.over:
        kinds = tuple(sorted(kind.value for kind in each.kinds))
        yield kinds if len(kinds) < 3 else (MANY,), Recovered(number, each.took_s, each.may_s, patient)


@define
class Tally:
    """The sum of all runs so far."""

    runs: int = 0
    steps: int = 0
    writes: int = 0
    rounds: int = 0
    seconds: float = 0.0
    done: Counter[Kind] = field(factory=Counter)
    seen: Counter[str] = field(factory=Counter)
    """Name -> in how many runs it was seen."""
    counts: Counter[str] = field(factory=Counter)
    """Name -> how often it was seen."""
    sometimes: tuple[str, ...] = tuple(SOMETIMES)
    """The names that may be seen."""
    strength: Strength = field(factory=Strength)
    laws: tuple[str, ...] = tuple(LAWS)
    """The laws that may be armed."""
    pairs: Counter[tuple[str, str]] = field(factory=Counter)
    """Two features -> in how many runs the world had both."""
    recoveries: dict[tuple[str, ...], list[Recovered]] = field(factory=dict)
    """The faults of a world -> how it came to rest after them."""
    broken: dict[str, list[tuple[int, Broken]]] = field(factory=dict)
    """Number -> the runs in which it was broken, the first one first."""

    def adds(self, one: Showed) -> None:
        self.runs += 1
        self.steps += one.steps
        self.writes += one.writes
        self.rounds += one.rounds
        self.seconds += one.seconds
        self.done.update(one.done)
        self.counts.update(one.counts)
        self.seen.update(one.counts.keys())
        self.pairs.update(combinations(one.features, 2))
        self.strength.armed.update(one.strength.armed)
        self.strength.excused.update(one.strength.excused)
        for faults, recovered in one.recoveries:
            self.recoveries.setdefault(faults, []).append(recovered)
        if one.broken:
            self.broken.setdefault(one.broken.number, []).append((one.run, one.broken))

    @property
    def first(self) -> tuple[int, Broken] | None:
        """Return the violation of the first run that had one."""
        return min((found[0] for found in self.broken.values()), key=lambda found: found[0], default=None)

    @property
    def violations(self) -> int:
        return sum(map(len, self.broken.values()))

    @property
    def never(self) -> tuple[str, ...]:
        """Return the names that may be seen and were not."""
        return tuple(what for what in self.sometimes if what not in self.seen)

    @property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of features that never met."""
        return tuple(pair for pair in PAIRS if not self.pairs[pair])

    @property
    def unarmed(self) -> tuple[str, ...]:
        """Return the laws that were never armed."""
        return tuple(number for number in self.laws if not self.strength.armed[number])

    @property
    def rarest(self) -> tuple[str, int] | None:
        """Return the name that was seen in the fewest runs, and in how many."""
        named = ((what, runs) for what, runs in self.seen.items() if what in self.sometimes)
        return min(named, key=lambda each: (each[1], each[0]), default=None)
