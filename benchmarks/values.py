"""What it buys that `core/values.py` has msgspec make the core's values.

    python benchmarks/values.py

Prints what a class, a value and a change of one field take, beside the same class made by attrs. Then the CPU time of what
`elastic launch` imports. For the simulator's speed beside another checkout see `benchmarks/simulator.py --against`.
"""

from __future__ import annotations

import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

import attrs
import click

from elastic.core.rendezvous import Limits, blank
from elastic.core.sim.calls.call_world import Shape as CallShape
from elastic.core.sim.calls.effects import beginning
from elastic.core.values import evolve, frozen
from elastic.core.world import Life

MAKES = 2_000
REPEATS = 25
IMPORTS = "import time; t = time.process_time(); import elastic.cli.launch; print(time.process_time() - t)"


@click.command()
@click.option("--launches", default=9, show_default=True)
def main(launches: int) -> None:
    print("| value | fields | its class, µs | by attrs | its birth, µs | by attrs | a change, µs | by attrs.evolve |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    rank = beginning(CallShape()).ranks[0]
    changed: tuple[tuple[Any, dict[str, Any]], ...] = (
        (blank(Life("benchmark"), Limits()), {"version": 1}),
        (rank.held, {"view": rank.held.view}),
        (rank.held.view, {"held_at": 1.0}),
        (rank.held.past, {"asides": 1}),
        (rank.main, {"token": 1}),
        (Limits(), {"max_nodes": 2}),
    )
    for value, changes in changed:
        theirs = by_attrs(value)
        given = {each.name: getattr(value, each.name) for each in attrs.fields(type(value)) if each.init}
        makes = spent_us(lambda: frozen(written(value)), 5), spent_us(lambda: attrs.frozen(written(value)), 5)  # noqa: B023
        births = spent_us(lambda: type(value)(**given)), spent_us(lambda: theirs(**given))  # noqa: B023
        its = theirs(**given)
        spans = spent_us(lambda: evolve(value, **changes)), spent_us(lambda: attrs.evolve(its, **changes))  # noqa: B023
        told = " | ".join(f"{each:.2f}" for pair in (makes, births, spans) for each in pair)
        print(f"| {type(value).__name__} | {len(given)} | {told} |")
    spent = [float(subprocess.check_output([sys.executable, "-c", IMPORTS])) for _ in range(launches)]
    print(f"\nimports of a launch: {1e3 * min(spent):.0f} ms of CPU")


def written(value: Any) -> Any:
    """Return the class of a value as it was written, with attrs' fields, before anything was made of it."""
    attrs.fields(type(value))  # which gives it these fields
    return type(value).__dict__["__attrs_attrs__"].given


def by_attrs(value: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = attrs.frozen(written(value))
    return made


def spent_us(call: Callable[[], object], makes: int = MAKES) -> float:
    call()
    return min(timeit.repeat(call, number=makes, repeat=REPEATS)) / makes * 1e6


if __name__ == "__main__":
    main()
