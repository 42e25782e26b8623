"""A wait as people see it: live last lines on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Protocol

from ...adapters.terminal import printed
from ...core.values import frozen

if TYPE_CHECKING:
    from rich.live import Live

DUMB = ("dumb", "unknown")
"""Values of TERM for terminals that cannot rewrite a line."""
LIVE_EVERY_S = 0.2
PLAIN_EVERY_S = 10.0
AGAIN_S = 60.0
"""How often a log repeats a wait that does not change."""


@frozen
class Wait:
    """A wait. Another `about` makes it another wait; another `detail` is news of the same one."""

    about: object
    detail: object
    text: str
    advice: tuple[str, ...] = ()
    """Lines that say what the user could do about it."""


class Out(Protocol):
    """A place for lines."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...
    def isatty(self) -> bool: ...


class LastLine(Protocol):
    """What stands below all other lines during a wait."""

    every_s: float
    """How often it must be shown again."""

    def show(self, wait: Wait, now: float) -> None:
        """Show the wait as it is now. Raises OSError or ValueError when the terminal is gone."""

    def make_room(self) -> None:
        """Leave the last line, so that another line can be written."""

    def clear(self) -> None:
        """Take the wait away: it is over."""


class PlainLastLine:
    """A line when the wait begins, when its detail changes, and once in a while; the advice once."""

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
    """Lines that are rewritten in place by rich, which is imported with the first wait: most runs have none.

    rich draws into memory. Given a stream it would replace sys.stderr, and end the program when the reader is gone.
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
        self._live.update(Text(printed(f"elastic  {wait.text}", *wait.advice).rstrip("\n")), refresh=True)
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
        """Write what is drawn, in one write as every line."""
        drawn = self._drawn.getvalue()
        self._drawn.seek(0)
        self._drawn.truncate()
        self._out.write(drawn)
        self._out.flush()


class Progress:
    """How far something has come: a live last line on a terminal, a plain line now and then in a log. A reader that has gone
    ends nothing."""

    def __init__(self, out: Out, began_at: float) -> None:
        live = out.isatty() and os.environ.get("TERM") not in DUMB
        self._line: LastLine = LiveLastLine(out) if live else PlainLastLine(partial(_say, out))
        self._every_s = LIVE_EVERY_S if live else PLAIN_EVERY_S
        self._shown_at = began_at
        self._quiet = False

    def is_due(self, now: float) -> bool:
        """Return False if it was shown a moment ago."""
        return not self._quiet and now - self._shown_at >= self._every_s

    def show(self, detail: object, text: str, now: float) -> None:
        self._shown_at = now
        try:
            self._line.show(Wait("progress", detail, text), now)
        except (OSError, ValueError):
            self._quiet = True

    def clear(self) -> None:
        """Take the live line away."""
        try:
            self._line.clear()
        except (OSError, ValueError):
            self._quiet = True


def _say(out: Out, text: str) -> None:
    out.write(printed(f"elastic  {text}"))
