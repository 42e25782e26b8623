"""The heartbeats of simulated nodes: one per interval, and one whenever it is asked for. The counterpart of
`adapters/rendezvous/heart.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from ..agent import Acknowledged
from ..world import Life
from . import sometimes
from .chance import Choose, one
from .future import Future
from .network import Network
from .process import Hears, Process, Thread
from .witness import Witness


@define
class Hearts:
    interval: float
    future: Future
    network: Network
    witness: Witness
    choose: Choose
    hear: Hears
    lags: Sequence[float] = ()
    """How much later than at its time a heartbeat is sent; nothing: at its time."""
    asked_s: float = 0.0
    """How long it takes from the command to beat until the heartbeat is sent."""

    def sleep_until_beat(self, process: Process) -> None:
        process.heart.timer += 1
        at = process.clock.true(process.clock.shows(self.future.now) + self.interval)
        late = one(self.choose, self.lags) if self.lags else 0.0
        self.future.at(at + late, self._beats, process, process.heart.timer)

    def _beats(self, process: Process, timer: int) -> None:
        if process.heart.timer != timer or self.network.waits(process, self._beats, process, timer):
            return
        if (until := process.stalls.ends[Thread.HEART]) > self.future.now:
            self.future.at(until, self._goes_on, process, timer)
        else:
            self.network.beat(process, process.clock.shows(self.future.now))

    def _goes_on(self, process: Process, timer: int) -> None:
        if process.main.evicted and process.heart.timer == timer:
            self.witness.seen("a heart goes on, and its node was evicted")
        self._beats(process, timer)

    def is_asked(self, process: Process) -> None:
        """Take the command to beat."""
        if self.asked_s:
            self.future.at(self.future.now + self.asked_s, self.beat_now, process)
        else:
            self.beat_now(process)

    def beat_now(self, process: Process) -> None:
        if process.heart.beating:
            process.heart.again = True
        else:
            process.heart.timer += 1
            self._beats(process, process.heart.timer)

    def beaten(self, process: Process, sent_at: float | None, life: Life | None) -> None:
        """Take the end of a heartbeat; `sent_at` is set if it was acknowledged."""
        again, process.heart.again = process.heart.again, False
        if again:
            self.beat_now(process)
        else:
            self.sleep_until_beat(process)
        if sent_at is None:
            return
        before = process.agent
        self.hear(process, Acknowledged(sent_at, life))
        if process.agent is before:
            sometimes.unacknowledged(self.witness.counts, process)
