"""`elastic simulate --calls`: runs of ranks that are restarted inside their processes, through their faults."""

from __future__ import annotations

from ..adapters.simulations.campaign import Calls
from ..core.sim.calls.call_strength import LAWS
from ..core.sim.calls.node_laws import LAWS as OVER_NODES
from ..core.sim.tally import Tally
from .campaigns import run_campaign
from .exit_codes import FAILED, SIGNALLED, SUCCEEDED
from .render import call_runs
from .render.text import say, say_data
from .simulate_options import SimulateOptions


def simulated(options: SimulateOptions, what: Calls) -> int:
    """Carry out what the options ask for of calls; return the exit code."""
    return _runs(options, what) if options.only is None else _tells(options, what, options.only)


def _runs(options: SimulateOptions, what: Calls) -> int:
    tally = Tally(sometimes=what.sometimes, laws=tuple(LAWS if what.nodes is None else OVER_NODES))
    stopped, took_s = run_campaign(what, options, tally)
    if options.json:
        say_data(call_runs.data(what, tally, took_s))
    else:
        say(*call_runs.summary(what, tally, took_s, options.verbose))
    if stopped.signum is not None:
        return SIGNALLED + stopped.signum
    return FAILED if tally.broken else SUCCEEDED


def _tells(options: SimulateOptions, what: Calls, number: int) -> int:
    walk = what.walk(number, tell=True)
    if options.json:
        say_data(call_runs.told_data(number, walk))
    else:
        say(*call_runs.told(walk))
    return FAILED if walk.broken else SUCCEEDED
