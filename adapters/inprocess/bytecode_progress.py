"""Progress that the user's code does not have to tell: as long as the main thread gets from one bytecode to the next.

CPython lets any thread leave a call that the main thread makes between two bytecodes, and only there: not while it sleeps
or waits in C. Such a call, left once per interval, stamps the page. The first `ping` of an iteration ends that: from then
on only what the user's code says counts.

What is left cannot be taken back, and may be made long after the wrapped call is over (a main thread that waits for the one
that made the call): so what CPython is given lives as long as the program, and says which span it is for.
"""

from __future__ import annotations

import ctypes
import math
import time

from ...core.inprocess.progress_limits import UNGUARDED, Limits, Marks
from .own_code import own
from .shared_page import ARMED, HARD, NS, OVER, SOFT, STAMP, Page


def marks(words: memoryview[int], token: int) -> Marks | None:
    """Where the user code of a span stands; None before it has begun. Once it is over no limit holds: that it is may be
    heard a moment later, and it may have run for longer than any limit."""
    if words[ARMED] == token:
        return Marks(words[STAMP] / NS, Limits(words[SOFT] / NS or math.inf, words[HARD] / NS or math.inf))
    return Marks(0.0, UNGUARDED) if words[OVER] == token else None


class Progress:
    """One call's. `probe` is T's, `pinged` is M's."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._manual = 0

    @own
    def pinged(self) -> None:
        """The user's code tells by itself, for the rest of this span."""
        self._manual = self._page.words[ARMED]

    def probe(self, token: int) -> bool:
        """Leave the call for the main thread; False if it is not wanted."""
        global _asking
        if self._manual == token:
            return False
        _asking = self
        _add(_pending, token)
        return True

    @own
    def gets_on(self, token: int) -> None:
        """That span does, unless it is over, or tells by itself."""
        words = self._page.words
        if words[ARMED] == token != self._manual:
            words[STAMP] = time.monotonic_ns()


_asking: Progress | None = None
"""Who left a call last."""


@own
def _made(token: int) -> int:
    if _asking:
        _asking.gets_on(token)
    return 0


_pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_made)
_add = ctypes.pythonapi.Py_AddPendingCall
