"""How a wait is shown: on a terminal as live last lines, in a log as plain lines now and then."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from rich.live import Live

AGAIN_S = 60.0
"""How often a log is told of a wait that does not change."""


@frozen
class Wait:
    """What is waited for. Another `about` is another wait; another `detail` is the same one, as it now stands."""

    about: object
    detail: object
    text: str
    advice: tuple[str, ...] = ()
    """What could be done about it."""


class Out(Protocol):
    """Where lines go."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...
    def isatty(self) -> bool: ...


class LastLine(Protocol):
    """What stands below all lines while something is waited for."""

    every_s: float
    """How often it wants to be shown anew."""

    def show(self, wait: Wait, now: float) -> None:
        """The wait as it is now. Raises OSError or ValueError when nobody can see it any more."""

    def make_room(self) -> None:
        """A line is to be written above it."""

    def clear(self) -> None:
        """The wait is over."""


class PlainLastLine:
    """A line when the wait begins, whenever it stands differently, and once in a while; the advice once."""

    every_s = 1.0

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self._last: Wait | None = None
        self._advised = False
        self._said_at = 0.0

    def show(self, wait: Wait, now: float) -> None:
        last = self._last
        if last is None or wait.about != last.about:
            last, self._advised = None, False
        if last is None or wait.detail != last.detail or now - self._said_at >= AGAIN_S:
            self._last, self._said_at = wait, now
            self._say(wait.text, *(() if self._advised else wait.advice))
            self._advised = self._advised or bool(wait.advice)

    def make_room(self) -> None:
        pass

    def clear(self) -> None:
        self._last = None


class LiveLastLine:
    """Rewritten in place. Drawn by rich, which is imported when the first wait is shown: most runs have none.

    It draws into memory, because it would replace sys.stderr otherwise, and end the program when nobody reads.
    """

    every_s = 1.0

    def __init__(self, out: Out) -> None:
        self._out = out
        self._drawn = StringIO()
        self._live: Live | None = None

    def show(self, wait: Wait, now: float) -> None:
        from rich.text import Text

        if self._live is None:
            self._live = self._begun()
        self._live.update(Text("\n".join((f"elastic  {wait.text}", *wait.advice))), refresh=True)
        self._put()

    def make_room(self) -> None:
        self.clear()

    def clear(self) -> None:
        live, self._live = self._live, None
        if live:
            live.stop()
            self._put()

    def _begun(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._drawn, force_terminal=True, highlight=False)
        live = Live(console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        live.start()
        return live

    def _put(self) -> None:
        """In one write, as all that is said."""
        drawn = self._drawn.getvalue()
        self._drawn.seek(0)
        self._drawn.truncate()
        self._out.write(drawn)
        self._out.flush()
