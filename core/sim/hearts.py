"""The heartbeats of simulated nodes: one per interval, and one whenever it is asked for. The counterpart of
`adapters/rendezvous/heart.py`.
"""

from __future__ import annotations

from attrs import define

from ..group.state import Beaten
from ..node import acknowledged
from ..world import Life
from . import sometimes
from .future import Future
from .network import Network
from .process import Hears, Process
from .witness import Witness


@define
class Hearts:
    interval: float
    future: Future
    network: Network
    witness: Witness
    hear: Hears

    def sleep_until_beat(self, process: Process) -> None:
        process.beat_timer += 1
        at = process.true(process.clock(self.future.now) + self.interval)
        self.future.at(at, self._beats, process, process.beat_timer)

    def _beats(self, process: Process, timer: int) -> None:
        if process.beat_timer != timer or self.network.waits(process, self._beats, process, timer):
            return
        if process.heart_until > self.future.now:
            self.future.at(process.heart_until, self._goes_on, process, timer)
        else:
            self.network.beat(process, process.clock(self.future.now))

    def _goes_on(self, process: Process, timer: int) -> None:
        if process.evicted and process.beat_timer == timer:
            self.witness.seen("a heart goes on, and its node was evicted")
        self._beats(process, timer)

    def beat_now(self, process: Process) -> None:
        if process.beating:
            process.beat_again = True
        else:
            process.beat_timer += 1
            self._beats(process, process.beat_timer)

    def beaten(self, process: Process, sent_at: float | None, life: Life | None) -> None:
        """Take the end of a heartbeat; `sent_at` is set if it was acknowledged."""
        again, process.beat_again = process.beat_again, False
        if again:
            self.beat_now(process)
        else:
            self.sleep_until_beat(process)
        if sent_at is None:
            return
        if not acknowledged(life, process.held.state):
            sometimes.unacknowledged(self.witness.counts, process)
        else:
            process.beaten_at = sent_at
            self.hear(process, Beaten(sent_at, process.clock(self.future.now)))
