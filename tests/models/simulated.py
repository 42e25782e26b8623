"""Simulated worlds for tests, made by the operations of a story."""

from __future__ import annotations

from attrs import evolve

from elastic.core.rendezvous import Held, Look
from elastic.core.sim.process import Process
from elastic.core.sim.simulation import World
from elastic.core.sim.story import Story, parsed, parsed_operation

TWO = ("start a", "start b", "pass 1")
ECHOED = (
    "fail a",
    "fail b; pass 0.3; fail c",
    "crash b",
    "fail a; crash b",
    "fail a; pass 0.02; succeed a",
    "fail a; fail a; crash c; start c; crash c",
    "pause a 2; fail a",
)
"""What befalls nodes whose workers echo each other's failures (`echoing`)."""


def echoing(operations: str, seed: int) -> Story:
    """Return the story of three nodes whose workers raise what a peer's failure makes them raise."""
    head = f"world nodes=3 max=3 workers=2 last_call=0.5 grace=3 echoes=1 seed={seed}"
    return parsed([head, "start a", "start b", "start c", "pass 3", *operations.split("; "), "pass 9"])


def world(*operations: str, setting: str = "world") -> World:
    """Return a new world after these operations."""
    return then(World(parsed([setting]).setting), *operations)


def then(made: World, *operations: str) -> World:
    """Return the same world after more operations."""
    for operation in operations:
        made.does(parsed_operation(operation))
    return made


def remembers(process: Process, held: Held) -> None:
    """It holds this, whatever it held."""
    process.client = evolve(process.client, held=held)


def hangs(process: Process) -> None:
    """It has asked something, and never hears of it."""
    process.client = evolve(process.client, out=Look())
    process.loop.request = process.loop.requests = 999
    process.loop.timer += 1


def at(made: World, slot: str) -> Process:
    """Return the agent on this slot."""
    process = made.at(slot)
    assert process is not None
    return process


def both_running() -> World:
    """Return a world in which nodes a and b have run for a second."""
    return world(*TWO, setting="world nodes=2 min=2 max=2")
