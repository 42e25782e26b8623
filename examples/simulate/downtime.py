"""Compute how long a job is down per day, from rates of failures and settings: simulated hours in seconds.

    python examples/simulate/downtime.py --nodes 8 --mtbf 500
    python examples/simulate/downtime.py --nodes 9 --min 8 --max 8 --mtbf 500      # one spare
    python examples/simulate/downtime.py --nodes 8 --mtbf 500 --missed 3           # notice lost nodes sooner

The job is down while not all workers of its world run. The time that the program itself needs to start and to load its
checkpoint comes on top, each time that the job goes down.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from attrs import define, frozen

from elastic.core import sim
from elastic.core.rendezvous import Limits

SETTLED_S = 60.0
"""The pause between two incidents, so that each is measured alone."""
DAY_S = 86_400
HOURS = click.FloatRange(min=0, min_open=True)
COUNT = click.IntRange(min=1)
SPAN = click.FloatRange(0, DAY_S)


@define
class Stopwatch:
    """Adds up how long, and how often, the job of a world is down."""

    world: sim.World | None = None
    up: bool = False
    since: float = 0.0
    down_s: float = 0.0
    times: int = 0

    def hears(self, judge: sim.Judge, fact: sim.Fact) -> tuple[()]:
        now, up = self.world.future.now if self.world else 0.0, all_run(judge)
        if up and not self.up:
            self.down_s += now - self.since
        elif self.up and not up:
            self.times += 1
            self.since = now
        self.up = up
        return ()


def all_run(judge: sim.Judge) -> bool:
    """Return True if a world stands and all its members run it."""
    state = judge.register
    if state is None or not state.complete:
        return False
    running = [judge.running.get(node) for node in state.members]
    return all(world is not None and world.round == state.round for world in running)


@frozen
class Incident:
    """A fault of a node; `comes_back` if its supervisor starts it again."""

    name: str
    kind: sim.Kind
    comes_back: bool


INCIDENTS = (
    Incident("a worker fails", sim.Kind.FAIL, False),
    Incident("a node is lost", sim.Kind.CRASH, True),
    Incident("a node is drained", sim.Kind.DRAIN, True),
)


@frozen
class Row:
    incident: Incident
    a_day: float
    down_s: float
    """Each time."""
    breaks: float
    """How often the job goes down for one incident: twice, if it goes on with fewer nodes and takes the lost one back."""

    @property
    def down_a_day_s(self) -> float:
        return self.a_day * self.down_s


def measured(setting: sim.Setting, incident: Incident, times: int, back: float) -> tuple[float, float]:
    """Return how long and how often the job is down for one such incident, on average."""
    watch = Stopwatch()
    world = watch.world = sim.World(setting, also=(watch.hears,))
    for slot in setting.slots:
        world.does(sim.Operation(sim.Kind.START, slot))
    world.does(sim.Operation(sim.Kind.PASS, span=SETTLED_S))
    if not watch.up:
        raise click.ClickException(f"this job never starts in {SETTLED_S:g} s: look at --nodes, --max and --last-call")
    began_s, began = watch.down_s, watch.times
    for operation in incidents(setting, incident, times, back):
        world.does(operation)
    return (watch.down_s - began_s) / times, (watch.times - began) / times


def incidents(setting: sim.Setting, incident: Incident, times: int, back: float) -> Iterator[sim.Operation]:
    """Yield the operations of the incidents, for one node after the other, at odd points in time."""
    choose = sim.seeded(setting.seed)
    for index in range(times):
        slot = setting.slots[index % setting.nodes]
        yield sim.Operation(sim.Kind.PASS, span=choose(1_000) / 1_000)
        yield sim.Operation(incident.kind, slot)
        if incident.comes_back:
            yield sim.Operation(sim.Kind.PASS, span=back)
            yield sim.Operation(sim.Kind.START, slot)
        yield sim.Operation(sim.Kind.PASS, span=SETTLED_S)


def table(rows: list[Row]) -> Iterator[str]:
    yield f"{'':20}{'a day':>8}{'down each time':>17}{'breaks':>9}{'down a day':>14}"
    for row in rows:
        name, each = row.incident.name, f"{row.down_s:.1f} s"
        yield f"{name:20}{row.a_day:8.2f}{each:>17}{row.breaks:9.1f}{f'{row.down_a_day_s:.1f} s':>14}"
    total = sum(row.down_a_day_s for row in rows)
    yield f"{'together':20}{'':8}{'':17}{'':9}{f'{total:.1f} s':>14}   up {1 - total / DAY_S:.4%}"


@click.command()
@click.option("--nodes", default=8, show_default=True, help="Number of nodes, spares included.")
@click.option("--min", "least", type=COUNT, help="Nodes that the job needs. [default: all]")
@click.option("--max", "most", type=COUNT, help="Nodes that the job takes at most. [default: all]")
@click.option(
    "--mtbf", default=1_000.0, type=HOURS, show_default=True, help="Hours until one node is lost, on average."
)
@click.option(
    "--worker-mtbf", default=500.0, type=HOURS, show_default=True, help="Hours until a worker of one node fails."
)
@click.option(
    "--drained-every", default=2_000.0, type=HOURS, show_default=True, help="Hours until one node is drained."
)
@click.option(
    "--back", default=60.0, type=SPAN, show_default=True, help="Seconds until a lost or drained node is replaced."
)
@click.option("--heartbeat", default=1.0, show_default=True, help="Seconds between two heartbeats.")
@click.option("--missed", default=5, show_default=True, help="Heartbeats missed before a node is lost.")
@click.option("--last-call", default=5.0, show_default=True, help="Seconds to wait for more nodes than the minimum.")
@click.option("--times", default=12, type=COUNT, show_default=True, help="How often each incident is simulated.")
@click.option("--seed", default=1, show_default=True)
def main(
    nodes: int,
    least: int | None,
    most: int | None,
    mtbf: float,
    worker_mtbf: float,
    drained_every: float,
    back: float,
    heartbeat: float,
    missed: int,
    last_call: float,
    times: int,
    seed: int,
) -> None:
    """Print how long a job is down per day."""
    try:
        setting = sim.Setting(
            nodes=nodes,
            limits=Limits(least or most or nodes, most or nodes, 1_000_000),
            seed=seed,
            interval=heartbeat,
            attempts=missed,
            join=86_400.0,
            last_call=last_call,
        )
    except ValueError as reason:
        raise click.UsageError(str(reason)) from None
    rows = []
    for incident, hours in zip(INCIDENTS, (worker_mtbf, mtbf, drained_every), strict=True):
        down_s, breaks = measured(setting, incident, times, back)
        rows.append(Row(incident, nodes * 24 / hours, down_s, breaks))
    for line in table(rows):
        click.echo(line)


if __name__ == "__main__":
    main()
