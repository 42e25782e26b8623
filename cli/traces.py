"""Serves the commands that read traces: it says which file cannot be read, lacks parts, or comes twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..adapters.report.trace_file import missing_parts
from ..adapters.terminal import why
from ..core.trace.lines import Corrupt
from ..core.trace.steps import Header
from .mistakes import Mistake


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
