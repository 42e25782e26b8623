"""What is told when a deadline passes: whose, after how long, what comes of it, and by which parameter it can be moved."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from traceback import StackSummary
from typing import Final

from ...core.inprocess.words import Deadline, Span, Timer
from . import user_stack as standing
from .gate import USERS, Gate
from .shared_page import HARD, NS, SOFT, STAMP, WANT, Page
from .thread_events import Ended

log = logging.getLogger("elastic.inprocess")

CONSEQUENCES: Final[Mapping[Timer, str]] = {
    Timer.SOFT: "{span} made no progress for {after:g} s ({limit}): the iteration ends",
    Timer.HARD: "{span} made no progress for {after:g} s ({limit}): the process is killed",
    Timer.LIMIT: "{span} did not end within {after:g} s (callback_timeout): it is called back",
    Timer.UNWIND: "{span} did not end within {after:g} s of being called back (unwind_timeout): the process is killed",
    Timer.ABORT: "abort did not end within {after:g} s (abort_timeout): this process runs no further iteration",
    Timer.SHORT: "too few ranks for {after:g} s (barrier_timeout): the job ends",
    Timer.COMPLETION: "others did not return within {after:g} s (completion_timeout): the iteration ends",
    Timer.CONFIRM: "nobody said within {after:g} s how the job ended (confirm_timeout)",
    Timer.STORE: "the store was out of reach for {after:g} s (store_timeout): this reserve leaves",
}
"""The others' passing is nothing to tell of."""
OF_MAIN: Final = (Timer.SOFT, Timer.HARD, Timer.LIMIT, Timer.UNWIND)
"""What the main thread does then is the question."""


class Late:
    """One rank's, of one call; T tells."""

    def __init__(self, rank: str, gate: Gate, page: Page) -> None:
        self._rank = rank
        self._gate = gate
        self._words = page.words
        self._of = 0
        """The token of the span whose deadline passed last; 0: it was of no span."""
        self.stands = StackSummary()
        """Where the user's code stood then; nothing if it was no longer, or not yet, to be seen."""

    def passed(self, deadline: Deadline, span: Span | None, round: int | None) -> Callable[[], None] | None:
        """To be called when it is time to tell: where the user's code stands is taken now."""
        limit = self._words[HARD if deadline.timer is Timer.HARD else SOFT]
        text = sentence(deadline, span.value if span else "", limit)
        of_main = deadline.timer in OF_MAIN
        self._of = deadline.of if of_main else 0
        self.stands = stands = self._gate.stack() if of_main else StackSummary()
        return (lambda: self._tell(round, text, stands)) if text else None

    def called_back(self, ended: Ended, span: Span | None, round: int | None) -> None:
        """Where code stood that hung and that nobody could look at, for it kept the interpreter."""
        soft = self._words[SOFT]
        if self._words[WANT] != ended.token and soft and time.monotonic_ns() >= self._words[STAMP] + soft:
            text = f"made no progress for {soft / NS:g} s and kept the interpreter: its monitor called it back"
        elif self._of == ended.token and not self.stands:
            text = "was called back"
        else:
            return
        stood = standing.raised_at(ended.error, USERS) if ended.error else StackSummary()
        self._tell(round, f"{span.value if span else ''} {text}", stood)

    def _tell(self, round: int | None, text: str, frames: StackSummary) -> None:
        log.error("rank %s, iteration %s: %s%s", self._rank, round, text, standing.told(frames))


def sentence(deadline: Deadline, span: str, limit: int) -> str:
    """In half a sentence, or empty. `limit`: of progress, in nanoseconds, as it holds where the user's code is."""
    name, after = f"{deadline.timer.value}_timeout", deadline.after_s
    if deadline.timer in (Timer.SOFT, Timer.HARD) and limit != int(after * NS):
        name, after = "a limit of its own", limit / NS
    return CONSEQUENCES.get(deadline.timer, "").format(span=span, after=after, limit=name)
