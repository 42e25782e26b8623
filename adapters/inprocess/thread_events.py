"""The messages between the main thread, which runs user code, and the driver, which decides; and what is raised in user
code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...core.inprocess.words import How, Span
from ...core.values import frozen
from ..report.news import LoopNotice


class Injected(BaseException):
    """Raised in user code that must end because the round is over. It is no `Exception`: `except Exception` lets it
    through."""

    @property
    def token(self) -> int:
        """The token of the span in which it was raised."""
        return int(self.args[0])


class Drained(SystemExit):
    """Raised in user code when SIGTERM came: the rank leaves the job."""

    def __init__(self) -> None:
        super().__init__(143)

    def __reduce__(self) -> tuple[type[Drained], tuple[()]]:
        return Drained, ()  # its text is its code


@frozen
class Order:
    """An order to run `code` as the span `token`. The limits are nanoseconds without progress; 0 is no limit. `clean` is how
    many nanoseconds the code has to handle what was raised in it, before the same is raised again."""

    token: int
    round: int
    span: Span
    code: Callable[[], object]
    active: bool = True
    soft: int = 0
    hard: int = 0
    clean: int = 0


@frozen(eq=False)
class SpanEnd:
    """The span has ended; the main thread waits in the wrapper."""

    token: int
    how: How
    value: object
    error: BaseException | None


@frozen
class LeftAtomic:
    """The main thread has left its outermost atomic section, and its span must end."""

    token: int


@frozen
class Signalled:
    """SIGINT or SIGTERM came while the main thread was not in user code."""

    signum: int


@frozen
class PutOff:
    """SIGINT or SIGTERM came in code of the wrapper that user code had called, and waits for its end."""


@frozen(eq=False)
class AbortEnded:
    """The user's abort is over; `error` is what it raised."""

    error: BaseException | None = None


@frozen
class StoreStarted:
    """The store has started, or has had its time to: the rank may ask for its first iteration."""


@frozen
class LimitsChanged:
    """The main thread has put other limits in force, which may pass sooner than the old ones."""


@frozen(eq=False)
class Release:
    """An order to let go of everything that an iteration has left behind, its errors for example."""

    errors: tuple[BaseException, ...]


@frozen(eq=False)
class Finished:
    """The last order: the call is over, with a value or an error."""

    value: object
    error: BaseException | None


ToMain: TypeAlias = Order | Release | Finished
FromGate: TypeAlias = SpanEnd | LeftAtomic | Signalled | PutOff
Message: TypeAlias = FromGate | AbortEnded | StoreStarted | LimitsChanged | LoopNotice
