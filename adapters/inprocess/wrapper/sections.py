"""The context managers that user code enters: an atomic section, and a stretch of code under other limits."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from ..gate.gate import Gate
from ..user_stack import own


class Atomic:
    """A section within which no restart begins, for work that must happen as a whole or not at all. Sections nest."""

    @own
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    @own
    def __enter__(self) -> None:
        self._gate.enter()

    @own
    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End the section. SystemExit and the like go on as they are, even if the round is over."""
        self._gate.leave(error is None or isinstance(error, Exception))


class Limited:
    """A stretch of user code under limits of its own, in nanoseconds; 0 is no limit. Stretches nest, both ends are safe
    points.

    `changed` is called after each change of the limits: the driver sleeps until the old ones pass.
    """

    @own
    def __init__(self, gate: Gate, soft: int, hard: int, changed: Callable[[], None]) -> None:
        self._gate = gate
        self._limits = soft, hard
        self._changed = changed
        self._before: list[tuple[int, int]] = []

    @own
    def __enter__(self) -> None:
        self._gate.only_main("a section with limits of its own")
        self._gate.check()
        self._before.append(self._gate.limits())
        self._gate.limit(*self._limits)
        self._changed()

    @own
    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._gate.limit(*self._before.pop())
        self._changed()
        if error is None:
            self._gate.check()
