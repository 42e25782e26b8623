"""What user code enters: an atomic section, and a stretch under other limits. Classes with own methods, no generators."""

from __future__ import annotations

from types import TracebackType

from .gate import Gate
from .own_code import own


class Atomic:
    """A section that no restart begins in: what must happen as a whole or not at all. They nest."""

    @own
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    @own
    def __enter__(self) -> None:
        self._gate.enter()

    @own
    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        """SystemExit and the like go on as they are, though the round may be over."""
        self._gate.leave(error is None or isinstance(error, Exception))


class Limited:
    """A stretch of user code under limits of its own, in nanoseconds; 0 is none. They nest. Both ends are safe points."""

    @own
    def __init__(self, gate: Gate, soft: int, hard: int) -> None:
        self._gate = gate
        self._limits = soft, hard
        self._before: list[tuple[int, int]] = []

    @own
    def __enter__(self) -> None:
        self._gate.check()
        self._before.append(self._gate.limits())
        self._gate.limit(*self._limits)

    @own
    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._gate.limit(*self._before.pop())
        if error is None:
            self._gate.check()
