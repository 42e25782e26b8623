"""A random run of ranks over nodes, from a seed: operations on the nodes, faults of the ranks, and an end in peace."""

from __future__ import annotations

from ...properties.judge import Property
from ...violation import Violation
from ..chance import seeded
from ..kinds import Kind
from ..run import converges
from ..swarm import Shape, Swarm, setting
from .over_nodes import OverNodes
from .walk import Walk

EVENTS = frozenset(
    (
        *(
            Kind.CRASH,
            Kind.KILL,
            Kind.PAUSE,
            Kind.PAUSE_HEART,
            Kind.CUT,
            Kind.DRAIN,
            Kind.NOTICE,
            Kind.START,
            Kind.FAIL,
        ),
        *(Kind.LOSE_REPLY, Kind.LATE_WRITE, Kind.GAP, Kind.OUTAGE, Kind.UNLINK, Kind.SLOW, Kind.DRAIN_SEAT),
        *(Kind.UNFIT, Kind.HANG_CHECK, Kind.BREAK_CHECK),
    )
)
"""These are done to the nodes. No store forgets here."""
NO_FAULTS = (Kind.START, Kind.PASS)
NODES = 4
OPERATIONS = 32
ALONE_MOST, RESTARTS_LEAST = 2, 3


def walked_over_nodes(seed: int, nodes: int = NODES, tell: bool = False, also: tuple[Property, ...] = ()) -> Walk:
    """Return the run of this seed. `also` are a user's own properties, of the nodes."""
    choose = seeded(seed)
    shape = Shape(nodes, faults=EVENTS, operations=OPERATIONS)
    drawn = setting(choose, shape)
    drawn = drawn.but(alone=1 + choose(ALONE_MOST), restarts=RESTARTS_LEAST + choose(RESTARTS_LEAST))
    over = OverNodes(choose, drawn, tell, also)
    broken: tuple[str, str] | None = None
    try:
        swarm = Swarm(choose, shape)
        operations = swarm.first(over.nodes)
        while operations:
            for operation in operations:
                over.does(operation)
            operations = swarm.operations(over.nodes)
        over.heals()
        converges(over.nodes)
        over.ends()
    except Violation as found:
        broken = found.number, str(found)
    over.seen.update({f"fault: {kind.value}": many for kind, many in over.nodes.done.items() if kind not in NO_FAULTS})
    strength = over.nodes.witness.judge.strength
    strength.armed.update(over.strength.armed)
    strength.excused.update(over.strength.excused)
    return Walk(over.nodes.steps + over.steps, over.seen, broken, strength=strength, told=tuple(over.told))
