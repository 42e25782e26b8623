"""How fast one core runs the simulated world: node steps and register writes per second of CPU time, properties on.

    python benchmarks/simulator.py [--runs 100] [--batches 10] [--against OTHER/.venv/bin/python]

A step is one `turn` of a node's rendezvous or one `transition` of its worker group. The same runs (the standard ones of
`elastic simulate`) are repeated in batches, in a process like those that it starts; the best batch counts, since other
load on the machine only ever slows one down.
Exits with 1 if it is below the bar.

`--against` names the Python of another checkout. Each run of five nodes is then made by both in turn, and of each the least
CPU time counts. That tells two commits apart on a busy machine, where no rate holds.
"""

from __future__ import annotations

import math
import subprocess
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
@click.option("--against", metavar="PYTHON", help="Compare with the code of this Python.")
def main(runs: int, batches: int, against: str | None) -> None:
    if against:
        compare(against, runs, batches)
        return
    collect_seldom()
    print("| nodes | steps/s | writes/s | simulated hours per hour |")
    print("| --- | --- | --- | --- |")
    rates = {nodes: max(batch(nodes, runs) for _ in range(batches)) for nodes in SIZES}
    for nodes, (steps, writes, hours) in rates.items():
        print(f"| {nodes} | {steps:,.0f} | {writes:,.0f} | {hours:,.0f} |")
    sys.exit(0 if rates[5][0] >= BAR else 1)


WORKER = """
import sys, time
from elastic.adapters.simulations.campaign import collect_seldom
from elastic.core.sim.run import wander
from elastic.core.sim.swarm import Shape
collect_seldom()
for seed in map(int, sys.stdin):
    began = time.process_time()
    world = wander(seed, Shape(nodes=5)).world
    print(world.steps, time.process_time() - began, flush=True)
"""


def compare(against: str, runs: int, batches: int) -> None:
    """Print the rates of the other code and of this one, and how much faster this one is."""
    steps, least = (dict[int, int](), dict[int, int]()), (dict[int, float](), dict[int, float]())
    with worker(against) as theirs, worker(sys.executable) as ours:
        for seed in [*range(runs)] * batches:
            for which, process in enumerate((theirs, ours)):
                assert process.stdin and process.stdout
                print(seed, file=process.stdin, flush=True)
                made, took = process.stdout.readline().split()
                steps[which][seed] = int(made)
                least[which][seed] = min(float(took), least[which].get(seed, math.inf))
    before, now = (sum(steps[which].values()) / sum(least[which].values()) for which in (0, 1))
    same = "the same steps" if steps[0] == steps[1] else "other steps"
    print(f"{before:,.0f} → {now:,.0f} steps/s, {now / before:.3f} times as fast; {same}")


def worker(python: str) -> subprocess.Popen[str]:
    """Start a process that makes the runs whose seeds it reads."""
    return subprocess.Popen([python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


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
