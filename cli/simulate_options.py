"""The options of `elastic simulate`, declared once, and what they ask for: a campaign of runs, one of them, or a story.

Readers of single values raise ValueError with the reason and the remedy. Options that do not fit together are a Mistake.
"""

from __future__ import annotations

import difflib
import os
from typing import Any

import click
from click.core import ParameterSource

from ..adapters.simulations.campaign import Calls, Campaign
from ..adapters.simulations.own_property import loaded
from ..core.properties.judge import Property
from ..core.rendezvous.state import NODES_MAX
from ..core.sim.features import FEATURES
from ..core.sim.kinds import Kind
from ..core.sim.story import Backend, StoryError, parsed
from ..core.sim.swarm import DRAWN, WORKERS_MOST, Shape
from ..core.values import frozen
from . import values
from .mistakes import Mistake
from .option import Section

RUNS = 1_000
"""How many, if neither --runs nor --steps says."""
SEEDS = 1 << 64
ALL = frozenset(DRAWN)


def _nodes(text: str) -> int:
    number = values.positive(text)
    if number > NODES_MAX:
        raise ValueError(f"at most {NODES_MAX} nodes")
    return number


def _seed(text: str) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not 0 <= number < SEEDS:
        raise ValueError("write a number from 0 to 2^64 - 1, like 0x5eed")
    return number


def faults(text: str) -> frozenset[Kind]:
    """Read `crash,fail`, `all` or `none`. `-pause` takes this one out of those before it, or out of all."""
    known = {kind.value: kind for kind in DRAWN}
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen = set(ALL if not words or words[0].startswith("-") else ())
    for word in words:
        name = word.removeprefix("-")
        if word not in ("all", "none") and name not in known:
            likely = difflib.get_close_matches(name, known, n=3) or list(known)[:3]
            raise ValueError(f"{name!r} is no fault; write one of {', '.join(likely)} … (--help has all {len(known)})")
        those = ALL if word == "all" else frozenset() if word == "none" else frozenset((known[name],))
        chosen = chosen - those if word.startswith("-") else chosen | those
    return frozenset(chosen)


def features(text: str) -> frozenset[str]:
    """Read `reserves,links`."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in FEATURES:
            raise ValueError(f"{word!r} is no feature; write some of {', '.join(FEATURES)}")
    return frozenset(words)


def _own_property(text: str) -> tuple[str, str]:
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise ValueError("write FILE.py:FUNCTION")
    loaded(path, name)
    return path, name


def _backend(text: str) -> Backend:
    if text not in [each.value for each in Backend]:
        raise ValueError("write cas or lease")
    return Backend(text)


def _story_file(text: str) -> str:
    """Read the name of a new file, or of a story."""
    if _is_there(values.new_file(text)):
        try:
            with open(text, encoding="utf-8") as file:
                parsed(file)
        except (OSError, StoryError, UnicodeDecodeError):
            raise ValueError("is there already, and is no story; name a new file") from None
    return text


def _is_there(path: str) -> bool:
    return os.path.isfile(path) and os.path.getsize(path) > 0


OPTIONS = Section("Options")


@frozen(kw_only=True)
class SimulateOptions:
    """What a command line asks for, read."""

    nodes: int = OPTIONS.option("N", _nodes, default=5)(
        "Nodes of the world. With --calls: the ranks are the workers of so many nodes. [default with --calls: no nodes]"
    )
    min: int | None = OPTIONS.option("N", _nodes)("The job's minimum of nodes. [default: drawn]")
    max: int | None = OPTIONS.option("N", _nodes)(
        "The job's maximum of nodes; those above it are spares. [default: drawn]"
    )
    seed: int | None = OPTIONS.option("SEED", _seed)(
        "The source of all chance. [default: a fresh one, which is printed]"
    )
    runs: int | None = OPTIONS.option("N", values.positive)(
        f"How many runs. [default: {RUNS}; with --steps alone, as many as it takes]"
    )
    steps: int | None = OPTIONS.option("N", values.positive)("Stop after so many steps of nodes, in all runs together.")
    faults: frozenset[Kind] = OPTIONS.option("LIST", faults, default="all")(
        "What is done to the nodes: all, none, names with commas between, -NAME to leave one out. Known: "
        f"{', '.join(kind.value for kind in DRAWN)}."
    )
    with_: frozenset[str] | None = OPTIONS.option("LIST", features)(
        f"Features that every world has: names with commas between. All others are drawn. Known: {', '.join(FEATURES)}."
    )
    operations: int = OPTIONS.option("N", values.whole, default=40)("Faults and other operations per run, at most.")
    backend: Backend | None = OPTIONS.option("cas|lease", _backend)(
        "How silence is noticed: by counters (cas) or by leases (lease). [default: drawn]"
    )
    property: tuple[tuple[str, str], ...] = OPTIONS.several("FILE.py:FUNCTION", _own_property)(
        "A property of your own, judged beside the built-in ones."
    )
    recoveries: bool = OPTIONS.flag()("Tell how long the worlds took to come to rest, by what had befallen them.")
    jobs: int | None = OPTIONS.option("N", values.positive)("Processes. [default: one per core]")
    only: int | None = OPTIONS.option("RUN", values.whole)("Tell one run of the seed, line by line.")
    replay: str | None = OPTIONS.option("FILE", str)("Read a story from this file, and tell it, line by line.")
    story: str | None = OPTIONS.option("FILE", _story_file)(
        "Write the story of the violation, or of the run that is told (--only, --replay), to this file. --replay reads it."
    )
    picture: str | None = OPTIONS.option("FILE.svg", values.new_picture)(
        "Draw the violation, or the run that is told, to this file."
    )
    calls: bool = OPTIONS.flag()("Simulate ranks that are restarted inside their processes, instead of nodes.")
    verbose: bool = OPTIONS.flag("-v")("Tell of each law how often it was armed and excused.")
    json: bool = OPTIONS.flag()("Print the result as data, for programs.")


@frozen
class Asked:
    """A campaign of nodes, and what is to be done with it."""

    options: SimulateOptions
    what: Campaign
    command: tuple[str, ...]
    """The options that make a run what it is, to be given again."""

    @property
    def also(self) -> tuple[Property, ...]:
        """Return the user's own properties, loaded."""
        return tuple(loaded(*each) for each in self.what.properties)


def asked_for(options: SimulateOptions, ctx: click.Context) -> Asked:
    """Return what the options ask for of nodes. Raises Mistake if they do not fit together."""
    if options.replay and options.only is not None:
        raise Mistake("--replay and --only: a story is one run already; leave one of them out")
    for param in _given(ctx) if options.replay else ():
        if param.name not in FOR_A_STORY:
            raise Mistake(f"{param.opts[0]}: is for runs that are drawn; leave it out, or --replay")
    tells = options.replay or options.only is not None
    if options.story and not tells and _is_there(options.story):
        given = f"--story={options.story}: is a story already"
        raise Mistake(f"{given}; write --replay={options.story} to tell it, or name a new file for that of a violation")
    if options.recoveries and tells:
        raise Mistake("--recoveries: is a table of many runs; leave out --only and --replay")
    return Asked(options, Campaign(_chosen_seed(options), _shape(options), options.property), _command(ctx))


FOR_A_STORY = ("replay", "property", "story", "picture", "recoveries", "json")
"""The options that go with --replay."""
FOR_CALLS = ("nodes", "seed", "runs", "steps", "jobs", "only", "property", "verbose", "json", "calls")
"""The options that go with --calls."""


def calls_asked_for(options: SimulateOptions, ctx: click.Context) -> Calls:
    """Return what the options ask for of calls. Raises Mistake for an option that is for nodes."""
    for param in _given(ctx):
        if param.name not in FOR_CALLS:
            raise Mistake(f"{param.opts[0]}: is for nodes; leave it out, or --calls")
    over = any(param.name == "nodes" for param in _given(ctx))
    if over and options.nodes > NODES_MAX // WORKERS_MOST:
        raise Mistake(f"--nodes={options.nodes}: at most {NODES_MAX // WORKERS_MOST} with --calls")
    return Calls(_chosen_seed(options), options.property, options.nodes if over else None)


def _chosen_seed(options: SimulateOptions) -> int:
    if options.only is not None and options.seed is None:
        raise Mistake("--only: a run of which seed? write --seed=SEED too, as it was printed")
    return int.from_bytes(os.urandom(4), "big") if options.seed is None else options.seed


def _shape(options: SimulateOptions) -> Shape:
    nodes, least, most = options.nodes, options.min, options.max
    if least is not None and least > nodes:
        raise Mistake(f"--min={least}: there are {nodes} nodes; write --nodes={least} too")
    if least is not None and most is not None and least > most:
        raise Mistake(f"--min={least}: the minimum is above the maximum ({most}); write --max={least} too")
    return Shape(nodes, least, most, options.backend, options.faults, options.operations, options.with_ or frozenset())


SHAPING = ("nodes", "min", "max", "faults", "with_", "operations", "backend", "property")
"""The options that make a run what it is."""


def _command(ctx: click.Context) -> tuple[str, ...]:
    """Return the options that shape a run, as they were given."""
    given = [param for param in _given(ctx) if param.name in SHAPING]
    return tuple(word for param in given for word in _spelled(param.opts[0], ctx.params[param.name or ""]))


def _given(ctx: click.Context) -> list[click.Parameter]:
    """Return the options that stand on the command line."""
    command_line = ParameterSource.COMMANDLINE
    return [each for each in ctx.command.params if ctx.get_parameter_source(each.name or "") is command_line]


def _spelled(option: str, value: Any) -> list[str]:
    match value:
        case Backend():
            return [f"{option}={value.value}"]
        case frozenset() if value and value <= FEATURES.keys():
            return [f"{option}={','.join(name for name in FEATURES if name in value)}"]
        case frozenset():
            left_out = [kind.value for kind in DRAWN if kind not in value]
            those = [kind.value for kind in DRAWN if kind in value]
            short = [f"-{name}" for name in left_out] if len(left_out) < len(those) else those
            return [f"{option}={','.join(short) or ('none' if left_out else 'all')}"]
        case tuple():
            return [f"{option}={path}:{name}" for path, name in value]
        case _:
            return [f"{option}={value}"]
