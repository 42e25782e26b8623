"""A run of torch: the operations of a story, then a healed world that must come to rest, then the success of all workers.

This is `core/sim/run.py` for torch: `told` does what `tell` does there, with the same bound.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve
from torchclock import clocked
from torchjudge import is_over, notes_lost, notes_outcomes, notes_restless, rests
from torchworld import Narrator, Peers, TorchWorld

from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import HOP_S, patience
from elastic.core.sim.story import Operation, Story


def told(story: Story, peers: Peers | None = None, tell: Narrator | None = None, ends: bool = True) -> TorchWorld:
    """Return the world after this story. If it `ends`, the world is also healed and brought to its end."""
    world = TorchWorld(story.setting, peers or Peers(), tell)
    with clocked(world, story.setting.seed):
        try:
            for operation in story.operations:
                world.does(operation)
            if ends:
                converges(world)
        finally:
            world.closes()
    return world


def converges(world: TorchWorld) -> None:
    """Stop all faults and judge the rest: within the bound, each living agent is in the one complete world, or a spare."""
    world.heals()
    bound = patience(world.setting)
    if _hops(world, bound, rests, _supervises):
        notes_lost(world)
        if not _hops(world, bound, is_over, _succeeds):
            notes_restless(world, bound, "after success everywhere")
    else:
        notes_restless(world, bound, "without faults")
        _hops(world, bound + world.peers.exit_barrier, is_over, _succeeds)
    notes_outcomes(world)
    rounds, causes = world.register.round, sum(world.causes.values())
    if rounds > 1 + causes:
        world.finds("L4", f"{rounds} rounds ended by {dict(world.causes)}")


def _hops(
    world: TorchWorld, bound: float, over: Callable[[TorchWorld], bool], each: Callable[[TorchWorld], None]
) -> bool:
    until = world.future.now + bound
    while not over(world):
        if world.future.now >= until:
            return False
        each(world)
        world.future.passes(world.future.now + HOP_S)
    return True


def _supervises(world: TorchWorld) -> None:
    if world.register.closed:
        return
    living = sum(1 for _ in world.living())
    for slot in world.setting.slots:
        if living < world.setting.limits.min_nodes and world.at(slot) is None:
            world.does(Operation(Kind.START, slot))
            living += 1


def _succeeds(world: TorchWorld) -> None:
    _supervises(world)
    for process in list(world.living()):
        world.succeeds(process)


# --- smaller


def shrunk(story: Story, number: str, peers: Peers | None = None, tries: int = 200) -> Story:
    """Return the story without the operations that the finding does not need."""
    size = len(story.operations)
    while size:
        for start in range(len(story.operations) - size, -1, -size):
            operations = story.operations[:start] + story.operations[start + size :]
            smaller = evolve(story, operations=operations)
            tries -= 1
            if tries < 0:
                return story
            if told(smaller, peers).found(number):
                story = smaller
                size = min(size, len(operations)) * 2
                break
        size //= 2
    return story
