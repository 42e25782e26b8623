"""What the options of `elastic simulate` ask for: a campaign of runs, one of them, or a story.

Readers of single values raise ValueError with the reason and the remedy; what does not fit together is a Mistake.
"""

from __future__ import annotations

import os
from typing import Any

import click
from attrs import frozen

from ..adapters.simulations.campaign import Campaign
from ..adapters.simulations.own_property import loaded
from ..core.properties.judge import Property
from ..core.rendezvous.state import NODES_MAX
from ..core.sim.story import Backend, Kind
from ..core.sim.swarm import DRAWN, Shape
from . import values
from .mistakes import Mistake

RUNS = 1_000
SEEDS = 1 << 64
ALL = frozenset(DRAWN)


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


def nodes(text: str) -> int:
    number = values.positive(text)
    if number > NODES_MAX:
        raise ValueError(f"at most {NODES_MAX} nodes")
    return number


def seed(text: str) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not 0 <= number < SEEDS:
        raise ValueError("write a number from 0 to 2^64 - 1, like 0x5eed")
    return number


def faults(text: str) -> frozenset[Kind]:
    """`crash,fail`: these; `all`, `none`; `-pause`: not this one, of those before it or of all."""
    known = {kind.value: kind for kind in DRAWN}
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen = set(ALL if not words or words[0].startswith("-") else ())
    for word in words:
        name = word.removeprefix("-")
        if word not in ("all", "none") and name not in known:
            raise ValueError(f"{name!r} is no fault (known: {', '.join(known)})")
        those = ALL if word == "all" else frozenset() if word == "none" else frozenset((known[name],))
        chosen = chosen - those if word.startswith("-") else chosen | those
    return frozenset(chosen)


def own_property(text: str) -> tuple[str, str]:
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise ValueError("write FILE.py:FUNCTION")
    loaded(path, name)
    return path, name


def backend(text: str) -> Backend:
    if text not in [each.value for each in Backend]:
        raise ValueError("write cas or lease")
    return Backend(text)


def asked_for(given: dict[str, Any]) -> Asked:
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
            left_out = [kind.value for kind in DRAWN if kind not in value]
            those = [kind.value for kind in DRAWN if kind in value]
            short = [f"-{name}" for name in left_out] if len(left_out) < len(those) else those
            return [f"{option}={','.join(short) or 'none'}"]
        case tuple():
            return [f"{option}={path}:{name}" for path, name in value]
        case _:
            return [f"{option}={value}"]
