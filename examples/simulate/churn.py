"""Test that a rank policy keeps the nodes that stay in order, whatever other nodes come and go.

    python examples/simulate/churn.py
    elastic simulate --property examples/simulate/churn.py:stays_in_order --nodes 6

The policy is your own pure function of the world. The simulator makes the worlds, with crashes, partitions and restarts
between them. The test compares each new world with the last one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from elastic.core import sim
from elastic.core.world import Node, World

Policy = Callable[[World], Sequence[Node]]

RACKS = {"a": "north", "b": "south", "c": "north", "d": "south", "e": "north", "f": "south"}


def by_rack(world: World) -> Sequence[Node]:
    """Give neighbours in one rack neighbouring ranks; within a rack the order is the world's."""
    return sorted((member.node for member in world.members), key=lambda node: RACKS[node.slot])


def by_oldest_rack(world: World) -> Sequence[Node]:
    """Do the same, but put the rack of the world's first node first. It looks right, but the first node may die."""
    racks = list(dict.fromkeys(RACKS[member.node.slot] for member in world.members))
    return sorted((member.node for member in world.members), key=lambda node: racks.index(RACKS[node.slot]))


def keeps_the_order(policy: Policy, judge: sim.Judge, fact: sim.Fact) -> Iterator[tuple[str, str]]:
    """When a round completes, yield a violation if the nodes that kept their seats changed their order."""
    if not isinstance(fact, sim.Wrote) or not fact.completes:
        return
    seats, life = fact.after.seats, fact.after.life
    now = [(node, seats[node].order, life) for node in policy(fact.after.world)]
    last = judge.notes.get("order", [])
    judge.notes["order"] = now
    before, after = ([str(seat[0]) for seat in one if seat in other] for one, other in ((last, now), (now, last)))
    if before != after:
        yield "order", f"in round {fact.after.round} {' '.join(before)} became {' '.join(after)}"


def stays_in_order(judge: sim.Judge, fact: sim.Fact) -> Iterator[tuple[str, str]]:
    return keeps_the_order(by_rack, judge, fact)


def oldest_rack_stays_in_order(judge: sim.Judge, fact: sim.Fact) -> Iterator[tuple[str, str]]:
    return keeps_the_order(by_oldest_rack, judge, fact)


def main(runs: int = 200, holds: sim.Property = stays_in_order) -> int:
    """Run many mixes of faults; shrink the first run that breaks the property, and print it."""
    for seed in range(runs):
        run = sim.wander(seed, sim.Shape(nodes=len(RACKS)), also=(holds,))
        if run.violation:
            run = sim.shrunk(run)
            print(f"{run.violation}\n{run.story}")
            return 1
    print(f"{runs} runs: the nodes that stayed kept their order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
