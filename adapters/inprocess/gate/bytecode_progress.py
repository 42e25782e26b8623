"""Progress that user code need not report: the main thread executes bytecodes.

CPython lets any thread register a call that the main thread makes between two bytecodes, and only there: not while it sleeps
or waits in C. The driver registers such a call once per interval, and the call stamps the page. The first `ping` of an
iteration ends that: from then on only pings count as progress.

A registered call cannot be withdrawn. The main thread may make it long after the wrapped call is over. So the function that
CPython is given lives as long as the program, and its argument names the span.
"""

from __future__ import annotations

import ctypes
import math
import time

from ....core.inprocess.progress_limits import UNGUARDED, Limits, Marks
from ..shared_page import ARMED, HARD, LAPSED, NS, OVER, SOFT, STAMP, Page
from ..user_stack import own


def marks(words: memoryview[int], token: int) -> Marks | None:
    """Return the last progress and the limits of a span; None before its user code has begun. After its end no limit holds:
    the driver may hear of the end a moment later, and the code may have run for longer than any limit."""
    if words[ARMED] == token:
        return Marks(words[STAMP] / NS, Limits(words[SOFT] / NS or math.inf, words[HARD] / NS or math.inf))
    return Marks(0.0, UNGUARDED) if words[OVER] == token else None


class Progress:
    """The progress of one call. The driver calls `probe`, the main thread calls `pinged`."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._manual = 0

    @own
    def pinged(self) -> None:
        """Let only pings count for the rest of this span."""
        self._manual = self._page.words[ARMED]

    def probe(self, token: int) -> bool:
        """Register the call for the main thread. Return False, and do nothing, if only pings count in this span."""
        global _asking
        if self._manual == token:
            return False
        _asking = self
        _add(_pending, token)
        return True

    @own
    def gets_on(self, token: int) -> None:
        """Stamp the page, unless that span is over or only its pings count."""
        words = self._page.words
        if words[ARMED] == token != self._manual:
            now = time.monotonic_ns()
            if words[SOFT] and now >= words[STAMP] + words[SOFT]:
                words[LAPSED] = token
            words[STAMP] = now


_asking: Progress | None = None
"""The progress for which a call was registered last."""


@own
def _made(token: int) -> int:
    if _asking:
        _asking.gets_on(token)
    return 0


_pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_made)
_add = ctypes.pythonapi.Py_AddPendingCall
