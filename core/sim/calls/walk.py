"""A random run of a world of calls: it goes on until nothing moves, and each step is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias

from attrs import field

from ...caller import Terms
from ...inprocess import OnInterrupt, Settings
from ...inprocess.monitoring import rules_of
from ...policies import Layer, at_most, by, chain, fill_gaps, multiple_of, shift, tree
from ...properties.law import Strength
from ...values import evolve, frozen
from ...violation import Finding, Violation
from ..chance import Choose, one, seeded
from . import call_strength, laws
from .call_world import Budget, Shape, World
from .clockwork import Clockwork
from .effects import beginning, step
from .moves import FAULTS, Move, faults, prompt_of, timed

Property: TypeAlias = Callable[[World, Move, World], Iterable[Finding]]
"""A law of a user's: it is given a world, a move, and the world after it, and yields names and sentences."""

STEPS_MAX = 5_000
"""A run that has not ended after this many steps never will (I17)."""
ODDS = 12
"""One step in this many is a fault, while faults are left."""
ODDS_OF_LOOP, FAULTS_OF_LOOP, RESTARTS_OF_LOOP = 4, 6, 12
ODDS_OF_STARVING, FAULTS_OF_STARVING, SECTIONS_OF_STARVING = 4, 6, 6
SOON = 40
"""In one run of this many a timed move may come although others can move: limits pass on busy machines too."""


@frozen
class Walk:
    """What a run showed. `broken` holds the law and what is wrong."""

    steps: int
    seen: Counter[str]
    broken: tuple[str, str] | None = None
    moves: tuple[Move, ...] = ()
    strength: Strength = field(factory=Strength)
    """How often each law was armed, and how often excused."""
    times: tuple[float, ...] = ()
    """When each move was made, in seconds; empty if the steps of this run take no time."""
    told: tuple[str, ...] = ()
    """These lines tell what happened; there are none if nobody asked, or if the moves tell all."""


def drawn(choose: Choose) -> Shape:
    """Draw the shape of a run."""
    ranks = 2 + choose(3) if choose(LARGE_ONE_IN) else 5 + choose(4)
    terms = one(choose, _terms(ranks))
    budget = Budget(choose(6) if choose(4) else 6 + choose(8), choose(4), choose(4))
    calls = one(choose, CALLS)
    loops = (calls.max_repeats, calls.fresh_after) != (None, None) and choose(3) > 0
    some = frozenset(one(choose, FAULTS) for _ in range(3)) if choose(2) else frozenset[str]()
    kinds = LOOP if loops else STARVING if not choose(STARVING_ONE_IN) else some
    if kinds is LOOP:
        budget = evolve(budget, faults=budget.faults + FAULTS_OF_LOOP)
    if kinds is STARVING:
        budget = evolve(budget, faults=budget.faults + FAULTS_OF_STARVING, sections=SECTIONS_OF_STARVING)
    shape = Shape(
        ranks,
        1 + choose(ranks),
        RESTARTS_OF_LOOP if loops else choose(4),
        terms,
        budget,
        kinds,
        calls,
        last_call_s=one(choose, (0.0, 0.0, 5.0)),
        upscale=choose(3) > 0,
        lasting=not choose(LASTING_ONE_IN),
    )
    return evolve(shape, replace_s=REPLACE_S) if shape.upscale and budget.respawns % 2 else shape


LOOP = frozenset(("fails here", "fails there"))
"""The failures that a run with limited repetitions has nearly alone."""
STARVING = frozenset(("starves", "hangs", "fails here"))
"""The faults of a run whose main threads keep the interpreter's lock, in atomic sections too. So the monitors act."""
STARVING_ONE_IN = 12
REPLACE_S = 0.5
LASTING_ONE_IN, STILL_ONE_IN = 3, 120
"""In one run of this many each step takes time; there a host stands still at one step in as many, while faults are left."""
LOSES_ONE_IN, LOSSES_MAX = 8, 4
"""One run in this many has a store that forgets, or that hides the outcome of a write; and how often at most."""
LARGE_ONE_IN = 5
"""One run in this many has five to eight ranks, the others two to four."""
UNLIKE = Settings(
    soft_timeout=50.0,
    hard_timeout=83.0,
    barrier_timeout=133.0,
    completion_timeout=112.0,
    termination_grace_time=3.0,
    unwind_timeout=21.0,
    abort_timeout=35.0,
    callback_timeout=42.0,
    leave_timeout=7.0,
    confirm_timeout=145.0,
    store_timeout=550.0,
    fresh_after=3,
)
"""Settings, no two of them alike."""
PATIENT = Settings(fresh_after=None)
CALLS = (
    *(PATIENT, UNLIKE, evolve(PATIENT, repeat_window=30.0, max_repeats=0)),
    *(evolve(PATIENT, repeat_window=30.0, max_repeats=1), evolve(PATIENT, max_faults=1)),
    *(evolve(PATIENT, max_iterations=2), evolve(PATIENT, on_interrupt=OnInterrupt.LEAVE)),
)


def _terms(ranks: int) -> tuple[Terms, ...]:
    """Return the conditions under which a world of all ranks can begin."""
    pairs = by(lambda member: str(int(member.node.slot) // 2))
    return (
        *(Terms(), Terms(shift(), 2, 2), Terms(multiple_of(2)), Terms(chain(), ranks, ranks)),
        *(Terms(chain(fill_gaps(), at_most(most))) for most in (max(ranks - 1, 1), max(ranks // 2, 1))),
        *(Terms(chain(shift(), multiple_of(2)), 2, 2), Terms(tree(Layer(pairs, 2, back_fill=True)))),
    )


def walked(
    seed: int,
    shape: Shape | None = None,
    early: bool = True,
    steps_max: int = STEPS_MAX,
    also: tuple[Property, ...] = (),
) -> Walk:
    """Return the run of this seed. `early`: timed moves may come before all else rests. `also` are a user's own laws."""
    choose = seeded(seed)
    if shape is None:
        shape = drawn(choose)
        losses = 1 + seed // LOSES_ONE_IN % LOSSES_MAX if seed % LOSES_ONE_IN == LOSES_ONE_IN - 2 else 0
        shape = evolve(shape, budget=evolve(shape.budget, losses=losses))
    world = beginning(shape)
    seen, moves, times, strength = Counter[str](), list[Move](), list[float](), Strength(Counter(I17=1))
    work = Clockwork(choose, world, rules_of(world.calls), strength) if shape.lasting else None
    broken: tuple[str, str] | None = "I17", f"I17: {steps_max} steps and no end"

    def note(word: str) -> None:
        seen[word] += 1

    try:
        while len(moves) < steps_max:
            move = _next_in_time(choose, world, work) if work else _next(choose, world, early)
            if move is None:
                laws.ended(world)
                call_strength.counts_end(strength, world)
                broken = None
                break
            moves.append(move)
            if work:
                times.append(work.now)
            before, world = world, step(world, move, note)
            call_strength.counts_step(strength, before, move, world)
            if work:
                world = work.took(move, world, note)
            for holds in also:
                for name, fact in holds(before, move, world):
                    raise Violation(name, fact)
    except Violation as found:
        broken = found.number, str(found)
    return Walk(len(moves), seen, broken, tuple(moves), strength, tuple(times))


def _next_in_time(choose: Choose, world: World, work: Clockwork) -> Move | None:
    """Return the next move of a run in which steps take time: a fault, or what is planned for the earliest time."""
    extra = _extra(choose, world)
    if world.budget.faults and not choose(STILL_ONE_IN):
        return work.stands_still(choose(len(world.ranks)))
    return extra or work.next()


def _next(choose: Choose, world: World, early: bool) -> Move | None:
    _, seldom = _odds(world)
    if extra := _extra(choose, world):
        return extra
    soon = early and not world.clean and not choose(seldom)
    late = timed(world) if soon else []
    return (one(choose, late) if late else None) or _of_a_thread(choose, world) or _of_time(choose, world)


def _extra(choose: Choose, world: World) -> Move | None:
    """Return a fault, if one is to come now."""
    odds, _ = _odds(world)
    extra = faults(world) if not choose(odds) else []
    if not extra:
        return None
    what = one(choose, list(dict.fromkeys(move.what for move in extra)))
    return one(choose, [move for move in extra if move.what == what])


def _odds(world: World) -> tuple[int, int]:
    """Return the odds of a fault, and of a timed move although others can move."""
    if world.kinds is LOOP:
        return ODDS_OF_LOOP, ODDS
    return (ODDS_OF_STARVING if world.kinds is STARVING else ODDS), SOON


def _of_a_thread(choose: Choose, world: World) -> Move | None:
    count = len(world.ranks)
    first = choose(count)
    for place in range(count):
        moves = prompt_of(world, (first + place) % count)
        if moves:
            return one(choose, moves)
    return None


def _of_time(choose: Choose, world: World) -> Move | None:
    moves = timed(world)
    return one(choose, moves) if moves else None
