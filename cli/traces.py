"""What the commands that read traces share: how a file that cannot be read, or comes twice, is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
