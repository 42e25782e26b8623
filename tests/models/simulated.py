"""Simulated worlds for tests, made by the operations of a story."""

from __future__ import annotations

from attrs import evolve

from elastic.core.rendezvous import Held, Look
from elastic.core.sim.process import Process
from elastic.core.sim.simulation import World
from elastic.core.sim.story import parsed, parsed_operation

TWO = ("start a", "start b", "pass 1")


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
