"""Progress that the user's code does not have to tell: as long as the main thread gets from one bytecode to the next.

CPython lets any thread leave a call that the main thread makes between two bytecodes, and only there: not while it sleeps
or waits in C. Such a call, left once per interval, stamps the page. The first `ping` of an iteration ends that: from then
on only what the user's code says counts.
"""

from __future__ import annotations

import ctypes
import math
import time

from ...core.inprocess.watchdog import UNGUARDED, Limits, Marks
from .own import own
from .page import ARMED, HARD, NS, OVER, SOFT, STAMP, Page


def marks(words: memoryview[int], token: int) -> Marks | None:
    """Where the user code of a span stands; None before it has begun. Once it is over no limit holds: that it is may be
    heard a moment later, and it may have run for longer than any limit."""
    if words[ARMED] == token:
        return Marks(words[STAMP] / NS, Limits(words[SOFT] / NS or math.inf, words[HARD] / NS or math.inf))
    return Marks(0.0, UNGUARDED) if words[OVER] == token else None


class Progress:
    """One call's. `watch` and `probe` are T's, `pinged` is M's."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._manual = 0
        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._stamp)
        self._add = ctypes.pythonapi.Py_AddPendingCall

    @own
    def pinged(self) -> None:
        """The user's code tells by itself, for the rest of this span."""
        self._manual = self._page.words[ARMED]

    def probe(self, token: int) -> bool:
        """Leave the call for the main thread; False if it is not wanted."""
        if self._manual == token:
            return False
        self._add(self._pending, None)
        return True

    @own
    def _stamp(self, _: object) -> int:
        words = self._page.words
        armed = words[ARMED]
        if armed and armed != self._manual:
            words[STAMP] = time.monotonic_ns()
        return 0
