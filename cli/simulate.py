"""`elastic simulate`: options -> a campaign of simulated runs, or one run told -> what they showed -> an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..adapters.simulations.own_property import PropertyFailed
from ..core.sim.drawing import drawn
from ..core.sim.run import Run, run_seed, tell, wander
from ..core.sim.shrink import shrunk
from ..core.sim.story import StoryError, parsed
from ..core.sim.swarm import DRAWN
from ..core.sim.tally import Tally
from . import simulate_calls, values
from . import simulate_options as options
from .campaigns import carried_through
from .exit_codes import FAILED, SIGNALLED, SUCCEEDED
from .mistakes import Mistake, Value
from .option import Command, Decorator
from .render import simulation
from .render.picture import picture

EPILOG = """\b
  elastic simulate                                       a thousand runs of five nodes, on all cores
  elastic simulate --nodes 16 --faults=crash,fail --steps 100000000
  elastic simulate --seed 0x5eed --only 417              one of them again, told line by line
  elastic simulate --replay v10-417.story --picture v10-417.svg
  elastic simulate --calls                               ranks that are restarted inside their processes
\b
A run is drawn from the seed and its number: the same on every machine, and whatever --jobs says. It ends when all
faults are over, everybody has come to rest, and all nodes were told the same end.
\b
Exit codes:  0 nothing is broken · 1 a violation · 2 a mistake in the command line · 128+n stopped by signal n
"""


def _given(name: str, metavar: str, read: Callable[[str], Any], help: str, **attributes: Any) -> Decorator:
    return click.option(name, metavar=metavar, type=Value(metavar, read), help=help, **attributes)


@click.command(
    cls=Command, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@_given("--nodes", "N", options.nodes, "Nodes that there are.", default="5", show_default=True)
@_given("--min", "N", options.nodes, "The job's minimum of nodes. [default: drawn]")
@_given("--max", "N", options.nodes, "The job's maximum of nodes; those above it are spares. [default: drawn]")
@_given("--seed", "SEED", options.seed, "Where all chance comes from. [default: a fresh one, which is printed]")
@_given("--runs", "N", values.positive, f"Runs. [default: {options.RUNS}; with --steps alone, as many as it takes]")
@_given("--steps", "N", values.positive, "Stop after so many steps of nodes, in all runs together.")
@_given(
    "--faults",
    "LIST",
    options.faults,
    f"What is done to the nodes: all, none, names with commas between, -NAME to leave one out. Known: "
    f"{', '.join(kind.value for kind in DRAWN)}.",
    default="all",
    show_default=True,
)
@_given(
    "--operations", "N", values.whole, "Faults and other operations per run, at most.", default="40", show_default=True
)
@_given("--backend", "cas|lease", options.backend, "How silence is noticed: by counters, by leases. [default: drawn]")
@_given(
    "--property", "FILE.py:FUNCTION", options.own_property, "A property of your own, judged beside ours.", multiple=True
)
@_given("--jobs", "N", values.positive, "Processes. [default: one per core]")
@_given("--only", "RUN", values.whole, "Tell one run of the seed, line by line.")
@click.option("--replay", metavar="FILE", help="Tell this story, line by line.")
@_given("--story", "FILE", values.new_file, "Where the story goes, of the violation or of --only's run.")
@_given("--picture", "FILE.svg", values.new_picture, "Draw it: the violation, or the run that is told.")
@click.option("--calls", is_flag=True, help="Ranks that are restarted inside their processes, instead of nodes.")
@click.option("--json", "as_json", is_flag=True, help="The result as data, for programs.")
def simulate(**given: Any) -> int:
    """Run the rendezvous through faults, in a world of simulated nodes, and judge every step.

    The nodes run the code of elastic launch; their clocks, their network, the store and their workers are simulated.
    """
    if given.pop("calls"):
        return simulate_calls.simulated(simulate_calls.asked_for(given))
    asked = options.asked_for(given)
    try:
        return _simulated(asked)
    except PropertyFailed as failed:
        raise Mistake(f"--property={failed}") from None


def _simulated(asked: options.Asked) -> int:
    if asked.replay is not None:
        return _replays(asked)
    if asked.only is not None:
        return _tells(asked, asked.only)
    return _runs(asked)


# --- many runs


def _runs(asked: options.Asked) -> int:
    tally = Tally()
    stopped, took_s = carried_through(asked.what, asked.runs, asked.steps, asked.jobs, tally)
    if not asked.as_json:
        _print(*simulation.summary(asked.what, tally, took_s, asked.command))
    found = _smaller(asked, tally.first[0]) if tally.first else None
    written = _written(asked, found.run, found.number) if found else []
    if asked.as_json:
        _print_json(simulation.data(asked.what, tally, took_s, found))
    elif found:
        _print("", *simulation.violation(found, asked.command, written))
    if stopped.signum is not None:
        return SIGNALLED + stopped.signum
    return FAILED if found else SUCCEEDED


def _smaller(asked: options.Asked, number: int) -> simulation.Found:
    """The run in which something is broken, told again here, and the least of it that breaks the same."""
    click.echo(f"elastic  run {number:,}: looking for the least of it that breaks the same", err=True)
    run = wander(run_seed(asked.what.seed, number), asked.what.shape, also=asked.also)
    return simulation.Found(number, len(run.story.operations), shrunk(run))


# --- one run, told


def _tells(asked: options.Asked, number: int) -> int:
    narrator = simulation.Narrator(None if asked.as_json else _print)
    run = wander(run_seed(asked.what.seed, number), asked.what.shape, narrator.hears, asked.also)
    found = simulation.Found(number, len(run.story.operations), shrunk(run))
    return _told(asked, found, narrator)


def _replays(asked: options.Asked) -> int:
    try:
        story = parsed(Path(asked.replay or "").read_text().splitlines())
    except OSError as error:
        raise Mistake(f"--replay={asked.replay}: {(error.strerror or str(error)).lower()}") from None
    except (StoryError, UnicodeDecodeError) as reason:
        raise Mistake(f"--replay={asked.replay}: {reason}") from None
    for nobody in sorted({each.slot for each in story.operations} - {"", *story.setting.slots}):
        there = f"{story.setting.slots[0]} to {story.setting.slots[-1]}"
        click.echo(f"elastic: --replay={asked.replay}: there is no node {nobody} in this world ({there})", err=True)
    narrator = simulation.Narrator(None if asked.as_json else _print)
    run = tell(story, narrator.hears, also=asked.also)
    return _told(asked, simulation.Found(None, len(story.operations), run), narrator)


def _told(asked: options.Asked, found: simulation.Found, narrator: simulation.Narrator) -> int:
    broken = found.run.violation
    wanted = asked.story or asked.picture or (broken and found.number is not None)
    written = _written(asked, found.run, found.number) if wanted else []
    if asked.as_json:
        _print_json(simulation.told_data(found, narrator.said))
    elif broken:
        _print("", *simulation.violation(found, asked.command, written, asked.replay))
    else:
        _print("", *simulation.all_well(found.run, written))
    return FAILED if broken else SUCCEEDED


# --- out


def _written(asked: options.Asked, run: Run, number: int | None) -> list[simulation.Written]:
    """The story and its picture, where they were asked for; those of a violation that was found always, under its number."""
    stem = simulation.stem(run.violation.number, number) if run.violation and number is not None else None
    story = asked.story or (f"{stem}.story" if stem else None)
    svg = asked.picture or (f"{stem}.svg" if stem else None)
    written = []
    if story:
        written.append(_write("story", story, f"{run.story}\n"))
    if svg:
        again, lanes = drawn(run.story, asked.also)
        written.append(_write("picture", svg, picture(lanes, simulation.title(again, number, asked.what.seed))))
    return written


def _write(what: str, path: str, text: str) -> simulation.Written:
    try:
        Path(path).write_text(text)
    except OSError as error:
        return simulation.Written(what, path, (error.strerror or str(error)).lower())
    return simulation.Written(what, path)


def _print(*lines: str) -> None:
    for line in lines:
        click.echo(line)


def _print_json(data: object) -> None:
    json.dump(data, sys.stdout, indent=2, ensure_ascii=False)
    click.echo()
