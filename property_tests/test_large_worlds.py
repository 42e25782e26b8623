"""A large world: its first round, a failure, the loss of a rack and of the store, the verdict; every property is judged.

`ELASTIC_SIMULATED_NODES` says how many nodes: 64 in the tests, 1,024 in `make soak`.
"""

from __future__ import annotations

import os

from elastic.core.rendezvous import Observe
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import is_over, tell
from elastic.core.sim.story import QUICK, Operation, Story
from elastic.core.world import Ending

NODES = int(os.environ.get("ELASTIC_SIMULATED_NODES", "64"))
RACK = 32
WORLD = QUICK.but(nodes=NODES, min=NODES - RACK, max=NODES, seed=20, last_call=5.0, overdue=20.0, links=1)


def at_once(kind: Kind, slots: tuple[str, ...]) -> tuple[Operation, ...]:
    return tuple(Operation(kind, slot) for slot in slots)


def passes(span: float) -> Operation:
    return Operation(Kind.PASS, span=span)


GATHER = (*at_once(Kind.START, WORLD.slots), passes(5.0))
FAILS = (Operation(Kind.FAIL, WORLD.slots[NODES // 2]), passes(5.0))


LOSES = (Operation(Kind.CRASH, WORLD.slots[5]), passes(20.0))
QUESTIONS_MAX = 6
"""Of one node in one round, beside looks at heartbeats."""
VERSIONS_MAX = 3
"""Of one round."""


def test_a_large_world_gathers_returns_and_loses_a_node_with_a_few_questions_of_each_and_a_few_versions() -> None:
    """Where nothing else goes wrong: the bound is the same for any number of nodes."""
    writes = 0
    for round, steps in enumerate((GATHER, (*GATHER, *FAILS), (*GATHER, *FAILS, *LOSES))):
        run = tell(Story(WORLD, steps), ends=False)
        assert run.violation is None
        register = run.world.store.register
        assert register is not None and register.complete
        assert (register.round, len(register.world.members)) == (round, NODES - (round == 2))
        tallies = run.world.witness.traffic.of.values()
        asked = [sum(many for kind, many in tally.asked.items() if kind is not Observe) for tally in tallies]
        assert max(asked) <= QUESTIONS_MAX
        assert run.world.writes - writes <= VERSIONS_MAX
        writes = run.world.writes


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
