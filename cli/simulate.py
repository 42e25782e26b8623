"""`elastic simulate`: options -> a campaign of simulated runs, or one run told -> what it showed -> an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..adapters.simulations.own_property import PropertyFailed
from ..adapters.terminal import no_text, why
from ..core.sim.drawing import drawn
from ..core.sim.run import Run, run_seed, tell, wander
from ..core.sim.shrink import shrunk
from ..core.sim.story import StoryError, parsed
from ..core.sim.tally import Tally
from . import simulate_calls
from .campaigns import run_campaign
from .exit_codes import FAILED, SIGNALLED, SUCCEEDED
from .mistakes import Mistake
from .option import Command, parameters
from .render import node_runs, recoveries
from .render.picture import picture
from .render.text import say, say_data
from .simulate_options import Asked, SimulateOptions, asked_for, calls_asked_for

EPILOG = """\b
  elastic simulate                                       a thousand runs of five nodes, on all cores
  elastic simulate --nodes 16 --faults=crash,fail --steps 100000000
  elastic simulate --seed 0x5eed --only 417              one of them again, told line by line
  elastic simulate --replay v10-417.story --picture v10-417.svg
  elastic simulate --calls                               ranks that are restarted inside their processes
  elastic simulate --calls --nodes 4                     such ranks in the workers of nodes that come and go
\b
A run is drawn from the seed and its number: it is the same on every machine and for any --jobs. It ends when all
faults are over, every node has come to rest, and all nodes were told the same end.
\b
Exit codes:  0 no violation · 1 a violation · 2 a mistake in the command line · 128+n stopped by signal n
"""


@click.command(
    cls=Command,
    params=parameters(SimulateOptions),
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.pass_context
def simulate(ctx: click.Context, /, **given: Any) -> int:
    """Run the rendezvous through faults in a world of simulated nodes, and judge every step.

    The nodes run the code of elastic launch; their clocks, their network, the store and their workers are simulated.
    """
    options = SimulateOptions(**given)
    try:
        if options.calls:
            return simulate_calls.simulated(options, calls_asked_for(options, ctx))
        return _simulated(asked_for(options, ctx))
    except PropertyFailed as failed:
        raise Mistake(f"--property={failed}") from None


def _simulated(asked: Asked) -> int:
    if asked.options.replay is not None:
        return _replays(asked, asked.options.replay)
    if asked.options.only is not None:
        return _tells(asked, asked.options.only)
    return _runs(asked)


# --- many runs


def _runs(asked: Asked) -> int:
    tally = Tally()
    stopped, took_s = run_campaign(asked.what, asked.options, tally)
    if not asked.options.json:
        say(*node_runs.summary(asked.what, tally, took_s, asked.command, asked.options.verbose))
        if asked.options.recoveries:
            say(*recoveries.lines(tally, node_runs.again(asked.what, asked.command)))
    found = _smaller(asked, tally.first[0]) if tally.first else None
    wanted = asked.options.story, asked.options.picture
    written = _written(asked, found.run, found.number) if found else node_runs.unwritten(*wanted)
    if asked.options.json:
        more = {"recoveries": recoveries.data(tally)} if asked.options.recoveries else {}
        say_data({**node_runs.data(asked.what, tally, took_s, found), **more})
        say(*node_runs.failures(written), err=True)
    elif found:
        say("", *node_runs.violation(found, asked.command, written))
    else:
        say(*node_runs.files(written))
    if stopped.signum is not None:
        return SIGNALLED + stopped.signum
    return FAILED if found else SUCCEEDED


def _smaller(asked: Asked, number: int) -> node_runs.Found:
    """Run the broken run again in this process; return the least of it that breaks the same."""
    say(f"elastic  run {number:,}: looking for the least of it that breaks the same", err=True)
    run = wander(run_seed(asked.what.seed, number), asked.what.shape, also=asked.also)
    if run.violation is None:
        raise Mistake(
            f"--property: run {number:,} breaks it no more; a property remembers in judge.notes, nowhere else"
        )
    return node_runs.Found(number, len(run.story.operations), shrunk(run))


# --- one run, told


def _tells(asked: Asked, number: int) -> int:
    narrator = node_runs.Narrator(None if asked.options.json else say)
    run = wander(run_seed(asked.what.seed, number), asked.what.shape, narrator.hears, asked.also)
    found = node_runs.Found(number, len(run.story.operations), shrunk(run))
    return _told(asked, found, narrator)


def _replays(asked: Asked, path: str) -> int:
    try:
        story = parsed(Path(path).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise Mistake(f"--replay={path}: {why(error)}") from None
    except UnicodeDecodeError as error:
        raise Mistake(f"--replay={path}: {no_text(error)}") from None
    except StoryError as reason:
        raise Mistake(f"--replay={path}: {reason}") from None
    for nobody in sorted({each.slot for each in story.operations} - {"", *story.setting.slots}):
        there = f"{story.setting.slots[0]} to {story.setting.slots[-1]}"
        raise Mistake(f"--replay={path}: there is no node {nobody} in this world ({there})")
    narrator = node_runs.Narrator(None if asked.options.json else say)
    run = tell(story, narrator.hears, also=asked.also)
    return _told(asked, node_runs.Found(None, len(story.operations), run), narrator)


def _told(asked: Asked, found: node_runs.Found, narrator: node_runs.Narrator) -> int:
    broken = found.run.violation
    wanted = asked.options.story or asked.options.picture or (broken and found.number is not None)
    written = _written(asked, found.run, found.number) if wanted else []
    if asked.options.json:
        say_data(node_runs.told_data(found, narrator.said))
        say(*node_runs.failures(written), err=True)
    elif broken:
        say("", *node_runs.violation(found, asked.command, written, asked.options.replay))
    else:
        say("", *node_runs.all_well(found.run, written))
    return FAILED if broken else SUCCEEDED


# --- out


def _written(asked: Asked, run: Run, number: int | None) -> list[node_runs.Written]:
    """Write the story and its picture where they were asked for; those of a violation always, named after its number."""
    stem = node_runs.stem(run.violation.number, number) if run.violation and number is not None else None
    story = asked.options.story or (f"{stem}.story" if stem else None)
    svg = asked.options.picture or (f"{stem}.svg" if stem else None)
    written = []
    if story:
        written.append(_write("story", story, f"{run.story}\n"))
    if svg:
        again, lanes = drawn(run.story, asked.also)
        written.append(_write("picture", svg, picture(lanes, node_runs.title(again, number, asked.what.seed))))
    return written


def _write(what: str, path: str, text: str) -> node_runs.Written:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        return node_runs.Written(what, path, why(error))
    return node_runs.Written(what, path)
