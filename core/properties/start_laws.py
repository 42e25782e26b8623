"""The laws of worlds that run: who runs which one, with which ranks, and beside whom (S2, S3, S9, S17)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..ranks import Ranks
from ..rendezvous import Status
from ..rendezvous.state import status_of
from ..world import Node, World
from .facts import Moved, Started
from .law import ARMED, EXCUSED, Answers, law

if TYPE_CHECKING:
    from .judge import Judge


@law("workers start", Started)
def S17(judge: Judge, it: Started) -> Answers:
    """The workers of a node start at most once for each world."""
    yield ARMED
    if (it.node, it.world.id) in judge.started:
        yield f"the workers of {it.node} start twice in round {it.world.round}"


@law("workers start", Started, Moved)
def S21(judge: Judge, it: Started | Moved) -> Answers:
    """The workers of a node belong only to a world of which it is a member."""
    yield ARMED
    if it.node not in it.world.nodes:
        yield f"the workers of {it.node} belong to round {it.world.round}, of which it is no member"


@law("workers start in a world in which others have started", Started, Moved)
def S2(judge: Judge, it: Started | Moved) -> Answers:
    """All nodes that run a world hold the same members."""
    known = judge.worlds.get(it.world.id)
    if known is None:
        return
    if isinstance(it, Started):
        yield ARMED
    if known != it.world:
        yield f"the world of round {it.world.round} is another one for {it.node}"


@law("the first workers of a world start", Started, Moved)
def S3(judge: Judge, it: Started | Moved) -> Answers:
    """Ranks are dense, and are the prefix sums of the local world sizes."""
    if it.world.id in judge.worlds:
        return
    if isinstance(it, Started):
        yield ARMED
    yield from _of_ranks(it.world, judge.assign(it.world))


def _of_ranks(world: World, ranks: Mapping[Node, Ranks]) -> Iterator[str]:
    """Yield what is wrong with these ranks, by counting them and not by the formula of `ranks`."""
    expected = 0
    for member in world.members:
        place = ranks[member.node]
        for local_rank, worker in enumerate(place.workers):
            if (worker.rank, worker.local_rank) != (expected, local_rank):
                yield f"worker {local_rank} of {member.node} has rank {worker.rank}, not {expected}"
            expected += 1
        if len(place.workers) != member.profile.local_world_size:
            yield f"{member.node} has {len(place.workers)} ranks for {member.profile.local_world_size} workers"
    if any(place.world_size != expected for place in ranks.values()):
        yield f"the world has {expected} workers, and some are told otherwise"


@law("workers start in a later world of a job than another's", Started, Moved)
def S9(judge: Judge, it: Started | Moved) -> Answers:
    """When workers of a world start, no other member of that world still runs workers of an earlier one; where workers
    restart alone, of an earlier generation."""
    if judge.earlier(it.world.id):
        yield ARMED
    for other, ran in _still_running(judge, it):
        if other in it.world.nodes:
            yield EXCUSED if _leaves(judge, other) else _late(other, ran, it)


@law("the same with the fence on, and the other is no member", Started, Moved, is_traced=False)
def S9_strong(judge: Judge, it: Started | Moved) -> Answers:
    """With the fence on, no node at all does, unless its agent was paused, leaves, was superseded, or is dead and its
    workers live on for longer than the TTL since its last heartbeat, the network refused in its name, or the store was lost
    between."""
    members = it.world.nodes
    if not judge.fenced:
        return
    if any(node not in members for each in judge.earlier(it.world.id) for node in each.nodes):
        yield ARMED
    for other, ran in _still_running(judge, it):
        if other in members:
            continue
        lost = ran.id.life != it.world.id.life  # after a loss a world may be complete before a survivor could answer
        misled = ran.id.round < judge.misled.get(other, 0)
        gone = other in judge.excused or other in judge.superseded
        yield EXCUSED if _leaves(judge, other) or lost or misled or gone else _late(other, ran, it)


def _still_running(judge: Judge, it: Started | Moved) -> Iterator[tuple[Node, World]]:
    """Yield the nodes whose workers are of an earlier world. Where they live through changes of nodes, each call judges
    which of its iterations counts."""
    for other, ran in judge.running.items():
        lives_on = other in judge.alone and ran.generation == it.world.generation
        moves = isinstance(it, Moved) and other == it.node
        if judge.is_earlier(ran.id, it.world.id) and not (lives_on or moves):
            yield other, ran


def _leaves(judge: Judge, node: Node) -> bool:
    """Return True if this node leaves, or was drained while its workers were being stopped."""
    register = judge.register
    return node in judge.leaving or (register is not None and status_of(register, node) is Status.LEAVING)


def _late(other: Node, ran: World, it: Started | Moved) -> str:
    return f"workers of {other} still run in round {ran.round} while those of {it.node} start in {it.world.round}"
