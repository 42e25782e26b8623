"""How far many runs have come: a live last line on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import os
from typing import TextIO

from ...core.sim.tally import Tally
from .last_line import LastLine, LiveLastLine, PlainLastLine, Wait
from .status import DUMB
from .words import many

LIVE_EVERY_S = 0.2
PLAIN_EVERY_S = 10.0


class Progress:
    def __init__(self, out: TextIO, runs: int | None, began_at: float) -> None:
        live = out.isatty() and os.environ.get("TERM") not in DUMB
        self._line: LastLine = (
            LiveLastLine(out) if live else PlainLastLine(lambda text: print(f"elastic  {text}", file=out))
        )
        self._every_s = LIVE_EVERY_S if live else PLAIN_EVERY_S
        self._runs = runs
        self._began_at = self._shown_at = began_at
        self._quiet = False

    def shows(self, tally: Tally, now: float) -> None:
        if self._quiet or now - self._shown_at < self._every_s:
            return
        self._shown_at = now
        try:
            self._line.show(Wait("runs", tally.runs, self._text(tally, now - self._began_at)), now)
        except (OSError, ValueError):
            self._quiet = True

    def clear(self) -> None:
        try:
            self._line.clear()
        except (OSError, ValueError):
            self._quiet = True

    def _text(self, tally: Tally, took_s: float) -> str:
        done = f"{tally.runs:,} of {many(self._runs, 'run')}" if self._runs else many(tally.runs, "run")
        broken = many(tally.violations, "violation") if tally.violations else "no violation"
        return f"{done} · {tally.steps:,} steps · {tally.steps / took_s:,.0f} steps/s · {broken}"
