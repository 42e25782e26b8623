"""What the threads of a wrapped call tell each other: M, which runs user code, and T, which decides. What is raised in M."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from attrs import frozen

from ..report.news import Notice
from .shared_page import Span


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


@frozen
class AbortEnded:
    """The thread that ran the user's abort is done."""


@frozen
class LimitsChanged:
    """The main thread has put other limits in force: they may end sooner than those that were waited for."""


@frozen(eq=False)
class Release:
    """For the main thread, which waits: let go of what an iteration has left behind."""

    errors: tuple[BaseException, ...]


@frozen(eq=False)
class Finished:
    """For the main thread, which waits: the call is over."""

    value: object
    error: BaseException | None


ToMain: TypeAlias = Order | Release | Finished
Message: TypeAlias = Ended | LeftAtomic | Signalled | AbortEnded | LimitsChanged | Notice
