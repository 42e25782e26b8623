"""What the main thread is told to do, what it tells, and what is raised in user code."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from .page import Span


class Injected(BaseException):
    """The round is over: leave the user's code. No `Exception`, so that `except Exception` does not keep it."""

    @property
    def token(self) -> int:
        """Of the span that it was raised in."""
        return int(self.args[0])


class Drained(SystemExit):
    """SIGTERM found the main thread in user code: leave it, and the job."""

    def __init__(self) -> None:
        super().__init__(143)


class How(Enum):
    """How a span of user code ended."""

    OK = "ok"
    EXCEPTION = "exception"
    BASE = "base"
    """By a BaseException that is no Exception: SystemExit, say."""
    INTERRUPT = "interrupt"
    """By KeyboardInterrupt."""
    INJECTED = "injected"
    """As it was asked to."""


@frozen
class Order:
    """Run `code` as the span `token`. The limits are nanoseconds without a word from it, 0: none."""

    token: int
    round: int
    span: Span
    code: Callable[[], object]
    active: bool = True
    soft: int = 0
    hard: int = 0


@frozen(eq=False)
class Ended:
    """The span has ended, and the main thread waits in the wrapper."""

    token: int
    how: How
    value: object
    error: BaseException | None


@frozen
class LeftAtomic:
    """The main thread has left its outermost atomic section while its span was wanted."""

    token: int


@frozen
class Signalled:
    """SIGINT or SIGTERM came while the main thread was not in user code."""

    signum: int
