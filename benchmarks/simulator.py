"""How fast one core runs the simulated world: node steps and register writes per second of CPU time, properties on.

    python benchmarks/simulator.py [--runs 100] [--batches 10]

A step is one `turn` of a node's rendezvous or one `transition` of its worker group. The same runs (the standard ones of
`elastic simulate`) are repeated in batches, in a process like those that it starts; the best batch counts, since other
load on the machine only ever slows one down.
Exits with 1 if it is below the bar.
"""

from __future__ import annotations

import sys
import time

import click

from elastic.adapters.simulations.campaign import collect_seldom
from elastic.core.sim.run import wander
from elastic.core.sim.swarm import Shape

BAR = 50_000
"""Node steps per second and core."""
SIZES = (3, 5, 16)


@click.command()
@click.option("--runs", default=100, show_default=True, help="Runs in a batch.")
@click.option("--batches", default=10, show_default=True)
def main(runs: int, batches: int) -> None:
    collect_seldom()
    print("| nodes | steps/s | writes/s | simulated hours per hour |")
    print("| --- | --- | --- | --- |")
    rates = {nodes: max(batch(nodes, runs) for _ in range(batches)) for nodes in SIZES}
    for nodes, (steps, writes, hours) in rates.items():
        print(f"| {nodes} | {steps:,.0f} | {writes:,.0f} | {hours:,.0f} |")
    sys.exit(0 if rates[5][0] >= BAR else 1)


def batch(nodes: int, runs: int) -> tuple[float, float, float]:
    """Steps, writes and simulated seconds per second of CPU time."""
    began, steps, writes, hours = time.process_time(), 0, 0, 0.0
    for seed in range(runs):
        world = wander(seed, Shape(nodes=nodes)).world
        steps, writes, hours = steps + world.steps, writes + world.writes, hours + world.future.now
    took = time.process_time() - began
    return steps / took, writes / took, hours / took


if __name__ == "__main__":
    main()
