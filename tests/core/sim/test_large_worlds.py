"""A large world: its first round, a failure, the loss of a rack and of the store, the verdict; every property is judged.

`ELASTIC_SIMULATED_NODES` says how many nodes: 64 in the tests, 1,024 in `make soak`.
"""

from __future__ import annotations

import os

from attrs import evolve

from elastic.core.sim.run import is_over, tell
from elastic.core.sim.story import QUICK, Kind, Operation, Story
from elastic.core.world import Ending

NODES = int(os.environ.get("ELASTIC_SIMULATED_NODES", "64"))
RACK = 32
WORLD = evolve(QUICK, nodes=NODES, min=NODES - RACK, max=NODES, seed=20, last_call=5.0, overdue=20.0, links=1)


def at_once(kind: Kind, slots: tuple[str, ...]) -> tuple[Operation, ...]:
    return tuple(Operation(kind, slot) for slot in slots)


def passes(span: float) -> Operation:
    return Operation(Kind.PASS, span=span)


GATHER = (*at_once(Kind.START, WORLD.slots), passes(5.0))
FAILS = (Operation(Kind.FAIL, WORLD.slots[NODES // 2]), passes(5.0))


def test_a_large_world_gathers_and_returns_in_a_few_versions() -> None:
    run = tell(Story(WORLD, (*GATHER, *FAILS)), ends=False)
    assert run.violation is None
    register = run.world.store.register
    assert register is not None and register.complete
    assert (register.round, len(register.world.members)) == (1, NODES)
    assert run.world.writes <= 8


def test_a_large_world_outlives_a_rack_and_a_store() -> None:
    rack = WORLD.slots[:RACK]
    lost = (*at_once(Kind.CRASH, rack), passes(20.0))
    back = (*at_once(Kind.START, rack), passes(10.0))
    store = (Operation(Kind.OUTAGE, span=3.0), passes(5.0), Operation(Kind.EMPTY), passes(5.0))
    run = tell(Story(WORLD, (*GATHER, *FAILS, *lost, *back, *store)))
    assert run.violation is None
    register = run.world.store.register
    assert register is not None and register.closed is not None
    assert (register.closed.ending, register.life.epoch) == (Ending.SUCCEEDED, 2)
    assert register.round == 3
    assert is_over(run.world)
