"""`elastic simulate --calls`: ranks that are restarted inside their processes, through their faults."""

from __future__ import annotations

import json
import os
from typing import Any

import click
from attrs import frozen

from ..adapters.simulations.campaign import Calls
from ..core.sim.calls.call_sometimes import SOMETIMES
from ..core.sim.calls.walk import Walk, walked
from ..core.sim.run import run_seed
from ..core.sim.tally import Tally
from .campaigns import carried_through
from .exit_codes import FAILED, SIGNALLED, SUCCEEDED
from .mistakes import Mistake
from .render import calls
from .simulate_options import RUNS

OURS = ("seed", "runs", "steps", "jobs", "only", "as_json", "calls")
"""The options that mean something here."""


@frozen
class Asked:
    """What the command line asks for."""

    what: Calls
    runs: int | None
    steps: int | None
    jobs: int
    only: int | None
    as_json: bool


def asked_for(given: dict[str, Any]) -> Asked:
    """Raises Mistake."""
    ctx = click.get_current_context()
    for param in ctx.command.params:
        name = param.name or ""
        if name not in OURS and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise Mistake(f"{param.opts[0]}: is for nodes; leave it out, or --calls")
    if given["only"] is not None and given["seed"] is None:
        raise Mistake("--only: a run of which seed? write --seed=SEED too, as it was printed")
    seed = int.from_bytes(os.urandom(4), "big") if given["seed"] is None else given["seed"]
    runs = given["runs"] or (None if given["steps"] else RUNS)
    jobs = given["jobs"] or len(os.sched_getaffinity(0))
    return Asked(Calls(seed), runs, given["steps"], jobs, given["only"], given["as_json"])


def simulated(asked: Asked) -> int:
    return _runs(asked) if asked.only is None else _tells(asked, asked.only)


def _runs(asked: Asked) -> int:
    tally = Tally(sometimes=SOMETIMES)
    stopped, took_s = carried_through(asked.what, asked.runs, asked.steps, asked.jobs, tally)
    if asked.as_json:
        click.echo(json.dumps(calls.data(asked.what, tally, took_s), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(calls.summary(asked.what, tally, took_s)))
    if stopped.signum is not None:
        return SIGNALLED + stopped.signum
    return FAILED if tally.broken else SUCCEEDED


def _tells(asked: Asked, number: int) -> int:
    walk: Walk = walked(run_seed(asked.what.seed, number))
    if asked.as_json:
        click.echo(json.dumps(calls.told_data(number, walk), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(calls.told(walk)))
    return FAILED if walk.broken else SUCCEEDED
