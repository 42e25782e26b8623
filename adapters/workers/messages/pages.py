"""The agent's side of a worker's page (`progress.py` has the worker's): its place, and what it says.

A worker may write anything, and be killed in the middle of it. What is read is bounded; the core believes only what can be.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from .progress import (
    BEFORE,
    BYTES,
    FIRST_AT,
    FIRST_STEP,
    NAME_BYTES,
    NAMES,
    NAMES_MAX,
    OTHER,
    SINCE,
    STEP,
    STEP_MAX,
    TABLE,
    WATCHED,
)

if TYPE_CHECKING:
    from ....core.work import Said

_MARKS = struct.Struct("=6d")
_STEPS = struct.Struct("=4Qd")
_SINCE = struct.Struct("=d")
_TABLE = struct.Struct(f"={NAMES_MAX + 1}d")


class Page(NamedTuple):
    """A page says this to the hang watch. `span` is 0 while the worker is not busy."""

    calls: int = 0
    span: int = 0
    limit_s: float = 0.0
    name: str = ""


def page_path(relay: str, round: int, rank: int) -> str:
    """Return the path of a worker's page, in the folder that is its agent's relay's."""
    return os.path.join(os.path.dirname(relay), f"progress.{round}.{rank}")


def page_again(path: str, number: int) -> str:
    """Return the path of the page of the same worker when it starts once more in its round."""
    folder, name = os.path.split(path)
    return os.path.join(folder, ".".join((*name.split(".")[:3], str(number))))


def put_before(path: str, step: int) -> None:
    """Make the page of a worker that is about to start, with the highest step of an earlier start. If that cannot be made,
    the worker makes its page itself, and nobody learns when it passed that step."""
    with suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(file, struct.pack("=Q", step + 1), 8 * BEFORE)
        finally:
            os.close(file)


def read_page(path: str | None) -> Page:
    """Return what a worker's page says to the hang watch; nothing if there is none."""
    data = _read(path, WATCHED.size)
    if data is None:
        return Page()
    calls, span, limit_s, name = WATCHED.unpack(data)
    if not span & 1 or not limit_s > 0:
        return Page(calls)
    return Page(calls, span, limit_s, _text(name))


def read_step(path: str | None) -> int | None:
    """Return the highest step that the page of a worker tells; None for none."""
    data = _read(path, 8, 8 * STEP)
    step: int = struct.unpack("=Q", data)[0] if data else 0
    return step - 1 if 0 < step <= STEP_MAX + 1 else None


def take_page(path: str | None) -> Said:
    """Return what the page of a worker that has ended says of its work, and remove it. None: it had none. Raises ImportError
    or OSError if this host cannot load what that takes."""
    data = _read(path, BYTES)
    if path is not None:
        with suppress(OSError):
            os.unlink(path)
    from ....core.work import Mark, Said  # only the end of a worker needs it

    if data is None:
        return Said()
    first, first_busy, passed, passed_busy, last, last_busy = _MARKS.unpack_from(data, 8 * FIRST_AT)
    first_step, step, saved, saves, saved_at = _STEPS.unpack_from(data, 8 * FIRST_STEP)
    names = [data[begins : begins + NAME_BYTES] for begins in range(NAMES, BYTES, NAME_BYTES)]
    spans = zip((*map(_text, names), OTHER), _TABLE.unpack_from(data, 8 * TABLE), strict=True)
    _, span, _, name = WATCHED.unpack_from(data)
    marks = Mark(first, first_busy), Mark(passed, passed_busy), Mark(last, last_busy)
    opened = (_text(name), *_SINCE.unpack_from(data, 8 * SINCE)) if span & 1 else None
    return Said(*marks, first_step, step, saved, saves, saved_at, tuple(spans), opened)


def _read(path: str | None, size: int, offset: int = 0) -> bytes | None:
    """Return the first bytes of a page, or those from there on; None if it has fewer."""
    if path is None:
        return None
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            data = os.pread(file, size, offset)
        finally:
            os.close(file)
    except OSError:
        return None
    return data if len(data) == size else None


def _text(name: bytes) -> str:
    """Return the name of a span; `other` for bytes that are no text."""
    try:
        return name.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return OTHER
