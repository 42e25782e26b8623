"""The gate's signal handlers, installed for the duration of a wrapped call.

The gate takes over SIGINT and SIGTERM unless the program ignores them. In user code the program's own handlers still run. A
child that the program forks (a data loader's worker) gets the program's handlers back, and a private page: it takes no part
in the job.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias
from weakref import WeakSet

from ..shared_page import Page
from .gate import SIGNUM, Gate

Disposition: TypeAlias = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class _Child:
    """A forked child's way back to the program's own handlers."""

    def __init__(self, page: Page, before: Mapping[int, Disposition]) -> None:
        self._page = page
        self._before = before

    def undo(self) -> None:
        self._page.part()
        _restore(self._before)


_children: WeakSet[_Child] = WeakSet()


def _forked() -> None:
    for child in list(_children):
        child.undo()


os.register_at_fork(after_in_child=_forked)


@contextmanager
def installed(gate: Gate, page: Page) -> Iterator[None]:
    """Install the handlers for this block, on the thread that made the gate. Outside the main thread install none."""
    before = _install(gate) if threading.current_thread() is threading.main_thread() else {}
    child = _Child(page, before)
    _children.add(child)
    try:
        yield
    finally:
        _children.discard(child)
        _restore(before)


def _install(gate: Gate) -> dict[int, Disposition]:
    before: dict[int, Disposition] = {}
    if signal.getsignal(SIGNUM) == signal.SIG_DFL:
        before[SIGNUM] = signal.signal(SIGNUM, gate.injected)
    for signum in (signal.SIGINT, signal.SIGTERM):
        theirs = signal.getsignal(signum)
        if callable(theirs):
            gate.theirs[signum] = theirs
        if callable(theirs) or theirs == signal.SIG_DFL:
            before[signum] = signal.signal(signum, gate.signalled)
    return before


def _restore(before: Mapping[int, Disposition]) -> None:
    for signum, disposition in before.items():
        signal.signal(signum, disposition)
