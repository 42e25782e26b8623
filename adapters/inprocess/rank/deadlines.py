"""The lines of the log for a deadline that passes: the span, the duration, the consequence, and the parameter to change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from traceback import StackSummary
from typing import Final

from ....core.inprocess.words import Deadline, Span, Timer
from .. import user_stack
from ..gate.bytecode_progress import marks
from ..gate.gate import Gate
from ..shared_page import HARD, NS, SOFT, WANT, Page
from ..thread_events import SpanEnd

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
"""The other timers' passing is not logged."""
OF_MAIN: Final = (Timer.SOFT, Timer.HARD, Timer.LIMIT, Timer.UNWIND)
"""The timers that measure what the main thread does: their lines show the user's stack."""


class Late:
    """The log of one call's deadlines on one rank, written by the driver."""

    def __init__(self, rank: str, gate: Gate, page: Page) -> None:
        self._rank = rank
        self._gate = gate
        self._words = page.words
        self._of = 0
        """The token of the span whose deadline passed last; 0: that deadline belonged to no span."""
        self._soft_of = 0
        """The token of the span whose soft timeout passed last."""
        self.stack = StackSummary()
        """The user's stack at that moment; empty if no user code was seen."""

    def passed(self, deadline: Deadline, span: Span | None, round: int | None) -> Callable[[], None] | None:
        """Take the user's stack now. Return a function that writes the line later; None if there is nothing to log. A span
        that has not begun waits for the clean-up before it, in destructors for example."""
        of_main = deadline.timer in OF_MAIN
        waits = of_main and marks(self._words, deadline.of) is None
        limit = int(deadline.after_s * NS) if waits else self._words[HARD if deadline.timer is Timer.HARD else SOFT]
        name = span.value if span else ""
        text = sentence(deadline, f"the clean-up before {name}" if waits else name, limit)
        self._of = deadline.of if of_main else 0
        self._soft_of = deadline.of if deadline.timer is Timer.SOFT else self._soft_of
        self.stack = frames = self._gate.stack(whole=waits) if of_main else StackSummary()
        return (lambda: self._log(round, text, frames)) if text else None

    def has_missed(self, token: int) -> bool:
        """Return True if this span hung, and its monitor called it back before its soft timeout passed here."""
        return self._gate.hung[0] == token != self._soft_of

    def called_back(self, ended: SpanEnd, span: Span | None, round: int | None) -> None:
        """Log where user code hung that kept the interpreter, so that no thread could look at its stack."""
        hung, soft = self._gate.hung
        if self._of == ended.token:
            text = "" if self.stack else "was called back"
        elif hung != ended.token:
            text = ""
        elif self._words[WANT] == hung:  # the driver had its turn first: it heard that the monitor had ended the round
            text = f"was called back after {soft / NS:g} s without progress"
        else:
            text = f"made no progress for {soft / NS:g} s and kept the interpreter: its monitor called it back"
        if not text:
            return
        stood = user_stack.raised_at(ended.error) if ended.error else StackSummary()
        self._log(round, f"{span.value if span else ''} {text}", stood)

    def _log(self, round: int | None, text: str, frames: StackSummary) -> None:
        log.error("rank %s, iteration %s: %s%s", self._rank, round, text, user_stack.appended(frames))


def sentence(deadline: Deadline, span: str, limit: int) -> str:
    """Return the text for this deadline, or an empty one. `limit` is the limit of progress in force, in nanoseconds."""
    name, after = f"{deadline.timer.value}_timeout", deadline.after_s
    if deadline.timer in (Timer.SOFT, Timer.HARD) and limit != int(after * NS):
        name, after = "a limit of its own", limit / NS
    return CONSEQUENCES.get(deadline.timer, "").format(span=span, after=after, limit=name)
