"""Many simulated runs, one after the other, until there are enough of them or a signal says so."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType

from attrs import define

from ..adapters.simulations.campaign import Calls, Campaign, campaign
from ..core.sim.tally import Tally
from .render.progress import Progress


def carried_through(
    what: Campaign | Calls, runs: int | None, steps: int | None, jobs: int, tally: Tally
) -> tuple[Stopped, float]:
    """What they show goes into the tally. Whether a signal ended it, and how long it took, in seconds."""
    began_at = time.monotonic()
    progress = Progress(sys.stderr, runs, began_at)
    with _until_signalled() as stopped, closing(campaign(what, runs, jobs)) as showed:
        for one in showed:
            tally.adds(one)
            progress.shows(tally, time.monotonic())
            if stopped.signum is not None or (steps is not None and tally.steps >= steps):
                break
    progress.clear()
    return stopped, time.monotonic() - began_at


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
