"""Serves the commands that read traces: it shows how much is read, says which file cannot be read, lacks parts, or comes
twice, and draws what they tell."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ..adapters.report.trace_file import missing_parts, size_of
from ..adapters.terminal import why
from ..core.trace.lines import Corrupt
from ..core.trace.steps import Header
from .mistakes import Mistake
from .render.last_line import Progress

T = TypeVar("T")
LOOK_BYTES = 1 << 12
"""After this many bytes it is looked at whether progress is due to be shown."""


class Reading:
    """How much of the traces has been read, as people see it."""

    def __init__(self, files: Sequence[str]) -> None:
        self._size = sum(map(size_of, files))
        self._done = 0
        self._due = 0
        """The clock is looked at when this much has been read."""
        self._progress = Progress(sys.stderr, time.monotonic())

    def reads(self, size: int) -> None:
        """Take that this many more bytes were read."""
        self._done += size
        if self._done < min(self._due, self._size):
            return
        self._due = self._done + LOOK_BYTES
        if self._progress.is_due(now := time.monotonic()):
            share = min(self._done / max(self._size, 1), 1.0)
            self._progress.show(self._done, f"{100 * share:.1f} % of {self._size / 2**20:,.0f} MiB read", now)

    def close(self) -> None:
        """Take what is shown away."""
        self._progress.clear()


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise Mistake for what goes wrong while this file is read."""
    try:
        yield
    except Corrupt as reason:
        raise Mistake(f"{path}: {reason}; is it a trace? elastic launch --trace writes them") from None
    except IsADirectoryError:
        raise Mistake(f"{path}: is a directory; name its files: {path.rstrip('/')}/*.ndjson") from None
    except OSError as error:
        raise Mistake(f"{path}: {why(error)}") from None


def note_header(first: dict[Header, str], path: str, header: Header) -> None:
    """Note where this trace was found `first`. Raises Mistake if it comes twice: all that it tells would count twice."""
    if header in first:
        raise Mistake(f"{path}: holds the trace of {header.node} that {first[header]} holds too; name one of them")
    first[header] = path


def gone(files: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield each trace that lacks parts, which were removed because it had grown too long: its name, the number of the part
    behind them, and which "are gone"."""
    for path in dict.fromkeys(files):
        if missing := missing_parts(path):
            first, last = missing
            those = f"{path}.{first} is" if first == last else f"{path}.{first} to {path}.{last} are"
            yield path, last + 1, f"{those} gone"


def draw(path: str, found: Sequence[T], those: str, drawn: Callable[[T], str]) -> None:
    """Draw the only one of what was `found` to this file: a picture has one axis of time. Raises Mistake for several, which
    are called `those`, and for a file that cannot be written."""
    if len(found) != 1:
        raise Mistake(f"--picture={path}: these traces are of {those}")
    try:
        Path(path).write_text(drawn(found[0]), encoding="utf-8")
    except OSError as error:
        raise Mistake(f"--picture={path}: {why(error)}") from None
