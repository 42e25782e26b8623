"""A run from beginning to end: the operations, then a healed world that must come to rest, then success.

A run is a story and its outcome. The same story gives the same run; `wander` draws a story from a seed, `tell` runs one that
is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..properties.judge import Property
from ..properties.law import Law
from ..rendezvous import Status, Violation
from ..values import frozen
from .chance import mixed, seeded
from .narration import Narrator, standing
from .network import ANSWER_TIMEOUT_S
from .own import CORE, Own
from .process import Process
from .recoveries import is_in_place
from .simulation import World
from .story import Operation, Setting, Story
from .swarm import Shape, Swarm
from .swarm import setting as drawn

HOP_S = 1.0
SETTLE_ROUNDS = 3
"""How many rounds in a row a healed world may need before it rests."""

L2 = Law(
    "L2",
    "In a healed world every live node comes into the one complete world, becomes a spare that is not set aside, or is "
    "told the end, and no fruitless round counts any longer, within a bound.",
    "the world is healed",
)


@frozen
class Run:
    """The outcome of a story."""

    story: Story
    world: World
    violation: Violation | None = None
    ends: bool = True
    """The world was healed after the story, and brought to its end."""


def run_seed(seed: int, run: int) -> int:
    """Return the seed of one run of many. Mixed twice, so that seed and seed + 1 have no run in common."""
    return mixed(mixed(seed) + run)


def wander(
    seed: int, shape: Shape, tell: Narrator | None = None, also: tuple[Property, ...] = (), own: Own = CORE
) -> Run:
    """Draw a story from this seed and run it."""
    choose = seeded(seed)
    world = World(drawn(choose, shape), tell, also, own=own)
    swarm = Swarm(choose, shape)
    done = list[Operation]()
    violation = None
    try:
        for operations in _drawn(swarm, world):
            for operation in operations:
                done.append(operation)
                world.does(operation)
        converges(world)
    except Violation as found:
        violation = found
    return Run(Story(world.setting, tuple(done)), world, violation)


def _drawn(swarm: Swarm, world: World) -> Iterator[tuple[Operation, ...]]:
    yield tuple(swarm.first(world))
    while operations := swarm.operations(world):
        yield tuple(operations)


def tell(
    story: Story, tell: Narrator | None = None, ends: bool = True, also: tuple[Property, ...] = (), own: Own = CORE
) -> Run:
    """Run this story; with `ends`, heal the world and bring it to its end, as every run does."""
    return told(World(story.setting, tell, also, own=own), story, ends)


def told(world: World, story: Story, ends: bool = True, does: Callable[[World, Operation], object] = World.does) -> Run:
    """Run this story in a fresh world; `does` is how each operation is done."""
    violation = None
    try:
        for operation in story.operations:
            does(world, operation)
        if ends:
            converges(world)
    except Violation as found:
        violation = found
    return Run(story, world, violation, ends)


# --- the end of a run


def converges(world: World) -> None:
    """Check L2 without further faults: every living node comes to be in the one complete world, a spare, or told. Then all
    workers succeed, and each node must be told that. Raises Violation."""
    world.heals()
    stands, patient = world.stands_still_for(), patience(world.setting) + cooldown(world)
    bound = stands + patient
    world.witness.well_at = world.future.now + stands + patient / SETTLE_ROUNDS
    world.witness.judge.strength.armed["L2"] += 1
    _hops(world, bound, rests, _supervises)
    _hops(world, bound, is_over, _succeeds)
    world.witness.judges_rounds()


def patience(setting: Setting) -> float:
    """Return how long a healed world may take to come to rest, in seconds."""
    ttl = setting.interval * setting.attempts
    spans = (
        2 * ttl,
        setting.overdue,
        setting.last_call,
        setting.upscale,
        2 * setting.longest_grace,
        4 * ANSWER_TIMEOUT_S,
        setting.rendezvous.progress_after if setting.limits.give_up_after else 0.0,
    )
    return SETTLE_ROUNDS * (sum(spans) + setting.barrier)


def cooldown(world: World) -> float:
    """Return how long a healed world may wait for the nodes that are set aside. A span of theirs may begin anew once."""
    limit = world.setting.rendezvous.max_node_failures
    asides = max((process.held.past.asides for process in world.living()), default=0)
    return 0.0 if limit is None else 2 * limit.told(limit.failures, asides).cooldown_s * (1 + 2 * world.setting.drift)


def _hops(world: World, bound: float, over: Callable[[World], bool], each: Callable[[World], None]) -> None:
    until = world.future.now + bound
    while not over(world):
        if world.future.now >= until:
            raise Violation("L2", f"after {bound:g} s without faults: {_restless(world)}")
        each(world)
        world.future.passes(world.future.now + HOP_S)
        world.witness.moved()


def _supervises(world: World) -> None:
    """Start as many nodes as the job needs, as a supervisor would: of its version, and with its limits."""
    world.ends_misfits()
    register = world.store.register
    if register is not None and register.closed:
        return
    living = [process.node.slot for process in world.living()]
    for slot in world.setting.slots:
        if world.setting.are_too_few(living) and world.at(slot) is None:
            world.does(Operation(world.starts_as(slot), slot))
            living.append(slot)


def _succeeds(world: World) -> None:
    _supervises(world)
    for process in list(world.living()):
        world.agents.workers.succeed(process)


def rests(world: World) -> bool:
    """Return True if nothing more can happen by itself to any living node."""
    register = world.store.register
    if register is not None and register.closed:
        return is_over(world)
    if register is not None and (register.census[Status.ASIDE] or register.fruitless):
        return False
    enough = not world.setting.are_too_few([process.node.slot for process in world.living()])
    return enough and all(_rests(world, process) for process in world.living())


def is_over(world: World) -> bool:
    register = world.store.register
    return register is not None and register.closed is not None and not any(world.living())


def _rests(world: World, process: Process) -> bool:
    register = world.store.register
    if register is None or not register.complete:
        return False
    seat = register.seats.get(process.node)
    if seat is not None and seat.status is Status.ABSENT:
        return register.is_spare(process.node)
    return is_in_place(register, process)


def _restless(world: World) -> str:
    register = world.store.register
    those = [
        f"{process.name} ({process.group.phase.value})" for process in world.living() if not _rests(world, process)
    ]
    state = standing(register) if register else "no register []"
    return f"{', '.join(those) or 'nobody lives'}; {state}"
