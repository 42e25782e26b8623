"""`elastic simulate`: options -> a campaign of simulated runs, or one run told -> what they showed -> an exit code."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
from attrs import define, frozen

from ..adapters.simulations import Campaign, campaign, loaded
from ..core.sim.drawing import drawn
from ..core.sim.properties import Property
from ..core.sim.run import Run, run_seed, shrunk, tell, wander
from ..core.sim.story import Backend, Kind, StoryError, parsed
from ..core.sim.swarm import FAULTS, RARE, Shape
from ..core.sim.tally import Tally
from . import values
from .exit_codes import FAILED, SIGNALLED, SUCCEEDED
from .mistakes import Mistake, Value
from .options import Decorator
from .render import simulation
from .render.picture import picture
from .render.progress import Progress

RUNS = 1_000
ALL = frozenset((*FAULTS, *RARE))

EPILOG = """\b
  elastic simulate                                       a thousand runs of five nodes, on all cores
  elastic simulate --nodes 16 --faults=crash,fail,-pause --steps 100000000
  elastic simulate --seed 0x5eed --only 417              one of them again, told line by line
  elastic simulate --replay v10-417.story --picture v10-417.svg
\b
A run is drawn from the seed and its number: the same on every machine, and whatever --jobs says. It ends when all
faults are over, everybody has come to rest, and all nodes were told the same end.
\b
Exit codes:  0 nothing is broken · 1 a violation · 2 a mistake in the command line · 128+n stopped by signal n
"""


@frozen
class Asked:
    """What the command line asks for."""

    what: Campaign
    runs: int | None
    steps: int | None
    jobs: int
    only: int | None
    replay: str | None
    story: str | None
    picture: str | None
    as_json: bool
    command: tuple[str, ...]
    """The options that make a run what it is, to be given again."""

    @property
    def also(self) -> tuple[Property, ...]:
        return tuple(loaded(*each) for each in self.what.properties)


def _seed(text: str) -> int:
    try:
        seed = int(text, 0)
    except ValueError:
        seed = -1
    if not 0 <= seed < 1 << 64:
        raise ValueError("write a number from 0 to 2^64 - 1, like 0x5eed")
    return seed


def _faults(text: str) -> frozenset[Kind]:
    """`crash,fail`: these; `all`, `none`; `-pause`: not this one, of those before it or of all."""
    known = {kind.value: kind for kind in (*FAULTS, *RARE)}
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen = set(ALL if not words or words[0].startswith("-") else ())
    for word in words:
        name = word.removeprefix("-")
        if word not in ("all", "none") and name not in known:
            raise ValueError(f"{name!r} is no fault (known: {', '.join(known)})")
        those = ALL if word == "all" else frozenset() if word == "none" else frozenset((known[name],))
        chosen = chosen - those if word.startswith("-") else chosen | those
    return frozenset(chosen)


def _property(text: str) -> tuple[str, str]:
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise ValueError("write FILE.py:FUNCTION")
    loaded(path, name)
    return path, name


def _backend(text: str) -> Backend:
    if text not in [each.value for each in Backend]:
        raise ValueError("write cas or lease")
    return Backend(text)


def _given(name: str, metavar: str, read: Callable[[str], Any], help: str, **attributes: Any) -> Decorator:
    return click.option(name, metavar=metavar, type=Value(metavar, read), help=help, **attributes)


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@_given("--nodes", "N", values.positive, "Nodes that there are.", default="5", show_default=True)
@_given("--min", "N", values.positive, "The job's minimum of nodes. [default: drawn]")
@_given("--max", "N", values.positive, "The job's maximum of nodes; those above it are spares. [default: drawn]")
@_given("--seed", "SEED", _seed, "Where all chance comes from. [default: a fresh one, which is printed]")
@_given("--runs", "N", values.positive, f"Runs. [default: {RUNS}; with --steps alone, as many as it takes]")
@_given("--steps", "N", values.positive, "Stop after so many steps of nodes, in all runs together.")
@_given(
    "--faults",
    "LIST",
    _faults,
    f"What is done to the nodes: all, none, names with commas between, -NAME to leave one out. Known: "
    f"{', '.join(kind.value for kind in (*FAULTS, *RARE))}.",
    default="all",
    show_default=True,
)
@_given(
    "--operations", "N", values.whole, "Faults and other operations per run, at most.", default="40", show_default=True
)
@_given("--backend", "cas|lease", _backend, "How silence is noticed: by counters, by leases. [default: drawn]")
@_given("--property", "FILE.py:FUNCTION", _property, "A property of your own, judged beside ours.", multiple=True)
@_given("--jobs", "N", values.positive, "Processes. [default: one per core]")
@_given("--only", "RUN", values.whole, "Tell one run of the seed, line by line.")
@click.option("--replay", metavar="FILE", help="Tell this story, line by line.")
@_given("--story", "FILE", values.new_file, "Where the story goes, of the violation or of --only's run.")
@_given("--picture", "FILE.svg", values.new_file, "Draw it: the violation, or the run that is told.")
@click.option("--json", "as_json", is_flag=True, help="The result as data, for programs.")
def simulate(**given: Any) -> int:
    """Run the rendezvous through faults, in a world of simulated nodes, and judge every step.

    The nodes run the code of elastic launch; their clocks, their network, the store and their workers are simulated.
    """
    asked = _asked(given)
    if asked.replay is not None:
        return _replays(asked)
    if asked.only is not None:
        return _tells(asked, asked.only)
    return _runs(asked)


def _asked(given: dict[str, Any]) -> Asked:
    """Raises Mistake."""
    if given["replay"] and given["only"] is not None:
        raise Mistake("--replay and --only: a story is one run already; leave one of them out")
    if given["only"] is not None and given["seed"] is None:
        raise Mistake("--only: a run of which seed? write --seed=SEED too, as it was printed")
    seed = int.from_bytes(os.urandom(4), "big") if given["seed"] is None else given["seed"]
    runs = given["runs"] or (None if given["steps"] else RUNS)
    jobs = given["jobs"] or len(os.sched_getaffinity(0))
    return Asked(
        Campaign(seed, _shape(given), given["property"]),
        runs,
        given["steps"],
        jobs,
        given["only"],
        given["replay"],
        given["story"],
        given["picture"],
        given["as_json"],
        _command(),
    )


def _shape(given: dict[str, Any]) -> Shape:
    nodes, least, most = given["nodes"], given["min"], given["max"]
    if least is not None and least > nodes:
        raise Mistake(f"--min={least}: there are {nodes} nodes; write --nodes={least} too")
    if least is not None and most is not None and least > most:
        raise Mistake(f"--min={least}: the minimum is above the maximum ({most}); write --max={least} too")
    return Shape(nodes, least, most, given["backend"], given["faults"], given["operations"])


def _command() -> tuple[str, ...]:
    """The options that shape a run, as they were given."""
    ctx = click.get_current_context()
    words = []
    for param in ctx.command.params:
        name = param.name or ""
        given = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name in ("nodes", "min", "max", "faults", "operations", "backend", "property"):
            words += _spelled(param.opts[0], ctx.params[name])
    return tuple(words)


def _spelled(option: str, value: Any) -> list[str]:
    match value:
        case Backend():
            return [f"{option}={value.value}"]
        case frozenset():
            left_out = [kind.value for kind in (*FAULTS, *RARE) if kind not in value]
            those = [kind.value for kind in (*FAULTS, *RARE) if kind in value]
            short = [f"-{name}" for name in left_out] if len(left_out) < len(those) else those
            return [f"{option}={','.join(short) or 'none'}"]
        case tuple():
            return [f"{option}={path}:{name}" for path, name in value]
        case _:
            return [f"{option}={value}"]


# --- many runs


def _runs(asked: Asked) -> int:
    tally, began_at = Tally(), time.monotonic()
    progress = Progress(sys.stderr, asked.runs, began_at)
    with _until_signalled() as stopped, closing(campaign(asked.what, asked.runs, asked.jobs)) as showed:
        for one in showed:
            tally.adds(one)
            progress.shows(tally, time.monotonic())
            if stopped.signum is not None or (asked.steps is not None and tally.steps >= asked.steps):
                break
    progress.clear()
    took_s = time.monotonic() - began_at
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


def _smaller(asked: Asked, number: int) -> simulation.Found:
    """The run in which something is broken, told again here, and the least of it that breaks the same."""
    click.echo(f"elastic  run {number:,}: looking for the least of it that breaks the same", err=True)
    run = wander(run_seed(asked.what.seed, number), asked.what.shape, also=asked.also)
    return simulation.Found(number, len(run.story.operations), shrunk(run))


@define
class Stopped:
    """The first signal that asks to stop; the next one ends the program as it would any other."""

    signum: int | None = None

    def hears(self, signum: int, frame: FrameType | None) -> None:
        self.signum = signum
        signal.signal(signum, signal.SIG_DFL)


@contextmanager
def _until_signalled() -> Iterator[Stopped]:
    stopped = Stopped()
    before = {signum: signal.signal(signum, stopped.hears) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


# --- one run, told


def _tells(asked: Asked, number: int) -> int:
    narrator = simulation.Narrator(None if asked.as_json else _print)
    run = wander(run_seed(asked.what.seed, number), asked.what.shape, narrator.hears, asked.also)
    found = simulation.Found(number, len(run.story.operations), shrunk(run))
    return _told(asked, found, narrator)


def _replays(asked: Asked) -> int:
    try:
        story = parsed(Path(asked.replay or "").read_text().splitlines())
    except OSError as error:
        raise Mistake(f"--replay={asked.replay}: {(error.strerror or str(error)).lower()}") from None
    except (StoryError, UnicodeDecodeError) as reason:
        raise Mistake(f"--replay={asked.replay}: {reason}") from None
    narrator = simulation.Narrator(None if asked.as_json else _print)
    run = tell(story, narrator.hears, also=asked.also)
    return _told(asked, simulation.Found(None, len(story.operations), run), narrator)


def _told(asked: Asked, found: simulation.Found, narrator: simulation.Narrator) -> int:
    broken = found.run.violation
    wanted = asked.story or asked.picture or (broken and found.number is not None)
    written = _written(asked, found.run, found.number) if wanted else []
    if asked.as_json:
        _print_json(simulation.told_data(found, narrator.said))
    elif broken:
        _print("", *simulation.violation(found, asked.command, written))
    else:
        _print("", *simulation.all_well(found.run, written))
    return FAILED if broken else SUCCEEDED


# --- out


def _written(asked: Asked, run: Run, number: int | None) -> list[simulation.Written]:
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
