"""Many simulated runs, until there are enough of them or a signal says stop; their progress is shown meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from types import FrameType
from typing import TextIO

from attrs import define

from ..adapters.simulations.campaign import Calls, Campaign, campaign
from ..core.sim.tally import Tally
from .mistakes import Mistake
from .render.last_line import Progress
from .render.text import many
from .simulate_options import RUNS, SimulateOptions


def run_campaign(what: Campaign | Calls, options: SimulateOptions, tally: Tally) -> tuple[Stopped, float]:
    """Add what the runs show to the tally; return the signal that stopped them, if any did, and the seconds they took.
    Raises Mistake if one of their processes is killed."""
    began_at, runs = time.monotonic(), options.runs or (None if options.steps else RUNS)
    progress = RunProgress(sys.stderr, runs, began_at)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    with _until_signalled() as stopped, closing(campaign(what, runs, jobs)) as showed:
        try:
            for one in showed:
                tally.adds(one)
                progress.shows(tally, time.monotonic())
                if stopped.signum is not None or (options.steps is not None and tally.steps >= options.steps):
                    break
        except BrokenProcessPool:
            progress.clear()
            raise Mistake(
                f"--jobs={jobs}: one of these processes was killed, by the out-of-memory killer or by a property, after "
                f"{many(tally.runs, 'run')} of seed {what.seed:#x}; write --jobs=1"
            ) from None
    progress.clear()
    return stopped, time.monotonic() - began_at


@define
class Stopped:
    """The first signal that asks to stop. The next one ends the program as it would end any other."""

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


class RunProgress:
    """How many runs are done."""

    def __init__(self, out: TextIO, runs: int | None, began_at: float) -> None:
        self._progress = Progress(out, began_at)
        self._runs = runs
        self._began_at = began_at

    def shows(self, tally: Tally, now: float) -> None:
        """Show how far the runs have come, unless that was shown a moment ago."""
        if self._progress.is_due(now):
            self._progress.show(tally.runs, self._text(tally, now - self._began_at), now)

    def clear(self) -> None:
        """Take the live line away."""
        self._progress.clear()

    def _text(self, tally: Tally, took_s: float) -> str:
        done = f"{tally.runs:,} of {many(self._runs, 'run')}" if self._runs else many(tally.runs, "run")
        broken = many(tally.violations, "violation") if tally.violations else "no violation"
        return f"{done} · {tally.steps:,} steps · {tally.steps / took_s:,.0f} steps/s · {broken}"
