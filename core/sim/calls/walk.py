"""A random run of a world of calls: it goes on until nothing moves, and each step is judged."""

from __future__ import annotations

from collections import Counter

from attrs import frozen

from ...caller import Terms
from ...evolving import evolve
from ...inprocess import OnInterrupt, Settings
from ...inprocess import Violation as OfCall
from ...policies import Layer, at_most, by, chain, fill_gaps, multiple_of, shift, tree
from ...properties.call_laws import Broken
from ...rendezvous import Violation as OfRegister
from ..chance import Choose, one, seeded
from . import laws
from .call_world import Budget, Shape, World
from .effects import beginning, step
from .moves import FAULTS, Move, faults, prompt_of, timed

STEPS_MAX = 2_500
"""A run that has not ended after so many steps never will (I17)."""
ODDS = 12
"""One step in so many is a fault, while faults are left."""
ODDS_OF_LOOP, FAULTS_OF_LOOP, RESTARTS_OF_LOOP = 4, 6, 12
SOON = 40
"""In one run of so many a timed move may come although others can move: limits pass on busy machines too."""


@frozen
class Walk:
    """What a run showed. `broken` holds the law and what is wrong."""

    steps: int
    seen: Counter[str]
    broken: tuple[str, str] | None = None
    moves: tuple[Move, ...] = ()


def drawn(choose: Choose) -> Shape:
    """Draw the shape of a run."""
    ranks = 2 + choose(3) if choose(LARGE_ONE_IN) else 5 + choose(4)
    terms = one(choose, _terms(ranks))
    budget = Budget(choose(6) if choose(4) else 6 + choose(8), choose(4), choose(4))
    calls = one(choose, CALLS)
    loops = calls.max_repeats is not None and choose(3) > 0
    some = frozenset(one(choose, FAULTS) for _ in range(3)) if choose(2) else frozenset[str]()
    kinds = LOOP if loops else some
    budget = evolve(budget, faults=budget.faults + FAULTS_OF_LOOP) if loops else budget
    return Shape(
        ranks,
        1 + choose(ranks),
        RESTARTS_OF_LOOP if loops else choose(4),
        terms,
        budget,
        kinds,
        calls,
        last_call_s=one(choose, (0.0, 0.0, 5.0)),
        upscale=choose(3) > 0,
    )


LOOP = frozenset(("fails here", "fails there"))
"""The failures that a run with limited repetitions has nearly alone."""
LARGE_ONE_IN = 5
"""One run in so many has five to eight ranks, the others two to four."""
CALLS = (
    *(Settings(), Settings(), Settings(repeat_window=30.0, max_repeats=0), Settings(repeat_window=30.0, max_repeats=1)),
    *(Settings(max_faults=1), Settings(max_iterations=2), Settings(on_interrupt=OnInterrupt.LEAVE)),
)


def _terms(ranks: int) -> tuple[Terms, ...]:
    """Return the conditions under which a world of all ranks can begin."""
    pairs = by(lambda member: str(int(member.node.slot) // 2))
    return (
        *(Terms(), Terms(shift(), 2, 2), Terms(multiple_of(2)), Terms(chain(), ranks, ranks)),
        *(Terms(chain(fill_gaps(), at_most(most))) for most in (max(ranks - 1, 1), max(ranks // 2, 1))),
        *(Terms(chain(shift(), multiple_of(2)), 2, 2), Terms(tree(Layer(pairs, 2, back_fill=True)))),
    )


def walked(seed: int, shape: Shape | None = None, early: bool = True, steps_max: int = STEPS_MAX) -> Walk:
    """Return the run of this seed. `early`: timed moves may come before all else rests."""
    choose = seeded(seed)
    world = beginning(shape or drawn(choose))
    seen, moves = Counter[str](), list[Move]()
    try:
        while len(moves) < steps_max:
            move = _next(choose, world, early)
            if move is None:
                laws.ended(world)
                return Walk(len(moves), seen, moves=tuple(moves))
            moves.append(move)
            world = step(world, move, lambda word: seen.update((word,)))
    except (Broken, OfCall, OfRegister) as broken:
        return Walk(len(moves), seen, (broken.number, str(broken)), tuple(moves))
    return Walk(len(moves), seen, ("I17", f"I17: {steps_max} steps and no end"), tuple(moves))


def _next(choose: Choose, world: World, early: bool) -> Move | None:
    odds, seldom = (ODDS_OF_LOOP, ODDS) if world.kinds is LOOP else (ODDS, SOON)
    extra = faults(world) if not choose(odds) else []
    if extra:
        what = one(choose, list(dict.fromkeys(move.what for move in extra)))
        return one(choose, [move for move in extra if move.what == what])
    soon = early and not world.clean and not choose(seldom)
    late = timed(world) if soon else []
    return (one(choose, late) if late else None) or _of_a_thread(choose, world) or _of_time(choose, world)


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
