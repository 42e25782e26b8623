"""What the twin class of `core/evolving.py` buys: values are made unfrozen and get their own class when they are complete.

    python benchmarks/evolving.py [--pairs 9] [--runs 12]

Prints what one `evolve` takes for values of the core, beside the same with the class's own birth, and beside `attrs.evolve`.
Then the steps per second of CPU time of simulated nodes and of simulated calls, with the twin class and with the class's own
birth: both take the same runs, in turn, and the ratio is the median over the pairs.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import attrs
import click

from elastic.adapters.simulations.campaign import collect_seldom
from elastic.core import evolving
from elastic.core.rendezvous import Limits, blank
from elastic.core.sim.calls.call_world import Shape as CallShape
from elastic.core.sim.calls.effects import beginning
from elastic.core.sim.calls.walk import walked
from elastic.core.sim.run import wander
from elastic.core.sim.swarm import Shape
from elastic.core.world import Life

MAKES = 2_000
REPEATS = 25


@click.command()
@click.option("--pairs", default=9, show_default=True)
@click.option("--runs", default=12, show_default=True, help="Runs in a batch.")
def main(pairs: int, runs: int) -> None:
    collect_seldom()
    print("| value | fields | evolve, µs | its own birth, µs | attrs.evolve, µs |")
    print("| --- | --- | --- | --- | --- |")
    for value, change in values():
        fields = sum(each.init for each in attrs.fields(type(value)))
        ours, theirs = spent_us(evolving.evolve, value, change), spent_us(attrs.evolve, value, change)
        with own_birth():
            own = spent_us(evolving.evolve, value, change)
        print(f"| {type(value).__name__} | {fields} | {ours:.2f} | {own:.2f} | {theirs:.2f} |")
    print("\n| simulated | steps/s | with its own birth | ratio |")
    print("| --- | --- | --- | --- |")
    for name, batch in (("5 nodes", nodes), ("calls", calls)):
        batch(runs)
        rates = [pair(batch, runs) for _ in range(pairs)]
        ratios = sorted(twin / own for twin, own in rates)
        twin, own = (max(each) for each in zip(*rates, strict=True))
        print(f"| {name} | {twin:,.0f} | {own:,.0f} | {median(ratios):.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f}) |")


def values() -> Iterator[tuple[Any, dict[str, object]]]:
    """Values of the core, and what is changed in each."""
    world = beginning(CallShape())
    rank = world.ranks[0]
    yield blank(Life("benchmark"), Limits()), {"version": 1}
    yield rank.held, {"unsure_at": 1.0}
    yield rank, {"alive": False}
    yield world, {"rings": 1}
    yield rank.main, {"token": 1}


def spent_us(evolve: Callable[..., object], value: object, changes: dict[str, object]) -> float:
    evolve(value, **changes)
    return min(timeit.repeat(lambda: evolve(value, **changes), number=MAKES, repeat=REPEATS)) / MAKES * 1e6


def plain(value: Any, **changes: Any) -> Any:
    """`evolve`, but each class makes its own values, past its freeze. Runs as the code of `evolve`, with the names there."""
    kind = type(value)
    read, places, _ = _shapes.get(kind) or _shape(kind)  # type: ignore[name-defined]  # noqa: F821
    values = [*read(value)]
    for name in changes:
        values[places[name]] = changes[name]
    return kind(*values)


@contextmanager
def own_birth() -> Iterator[None]:
    """Every module of the core knows `evolve` by name, so its code is changed, and changed back."""
    twin = evolving.evolve.__code__
    evolving.evolve.__code__ = plain.__code__
    try:
        yield
    finally:
        evolving.evolve.__code__ = twin


def pair(batch: Callable[[int], float], runs: int) -> tuple[float, float]:
    twin = batch(runs)
    with own_birth():
        return twin, batch(runs)


def nodes(runs: int) -> float:
    began, steps = time.process_time(), 0
    for seed in range(runs):
        steps += wander(seed, Shape(nodes=5)).world.steps
    return steps / (time.process_time() - began)


def calls(runs: int) -> float:
    began, steps = time.process_time(), 0
    for seed in range(runs):
        steps += walked(seed).steps
    return steps / (time.process_time() - began)


if __name__ == "__main__":
    main()
