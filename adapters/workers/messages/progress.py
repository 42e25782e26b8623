"""A worker's word that it makes progress, or is busy: a page of memory that it shares with its agent.

ELASTIC_PROGRESS names the page's file, where --hang-timeout is given. The worker makes it at its first call, and from then
on a call is a write to memory. The agent reads the file now and then, and only believes what fits: a worker may write
anything. Whoever forks shares the page.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

VARIABLE = "ELASTIC_PROGRESS"
"""The variable that tells a worker the page's path."""
_CALLS, _SPANS, _LIMIT, _NAME = 0, 1, 2, 24
"""The first two words: how often progress was called, and the number of the busy span. Then its limit and its name."""
_NAME_MAX = 100
_BYTES = 128
_FORMAT = struct.Struct(f"=QQd{_NAME_MAX}s")
_words: memoryview | None = None
_page: memoryview | None = None
_open_spans: list[tuple[str, float]] = []


class Page(NamedTuple):
    """What a page says. `span` is 0 while the worker is not busy."""

    calls: int = 0
    span: int = 0
    limit_s: float = 0.0
    name: str = ""


# --- the worker's side


def progress() -> None:
    """Say that this worker makes progress. Call it in each step; it takes less than a microsecond.

    A script that calls this says all there is to say: its output counts no longer. Without --hang-timeout this does nothing.
    """
    if _words is not None or _has_page():
        _words[_CALLS] += 1  # type: ignore[index]


@contextmanager
def busy(name: str, limit: float) -> Iterator[None]:
    """Mark a span in which this worker makes no progress for `limit` seconds at most: a checkpoint, a compilation.

    Within it `limit` counts instead of --hang-timeout. Spans may stand in each other: the innermost counts.
    """
    if not limit > 0:
        raise ValueError(f"busy: a limit above 0 seconds, not {limit!r}")
    span = (name, limit)
    _open_spans.append(span)
    _tell()
    try:
        yield
    finally:
        _open_spans.remove(span)  # that of another thread may have begun since
        _tell()


def _tell() -> None:
    """Write the innermost span. Its number comes last, so that the agent finds the limit that belongs to it."""
    if not _has_page() or _words is None or _page is None:
        return
    number = _words[_SPANS] >> 1
    if not _open_spans:
        _words[_SPANS] = number << 1
        return
    name, limit = _open_spans[-1]
    _page[_NAME : _NAME + _NAME_MAX] = name.encode(errors="replace")[:_NAME_MAX].ljust(_NAME_MAX, b"\0")
    _page[_LIMIT * 8 : _NAME] = struct.pack("=d", limit)
    _words[_SPANS] = number + 1 << 1 | 1


def _has_page() -> bool:
    """Map the page, once. Where there is none, or none can be made, memory of this process takes its place."""
    global _words, _page
    if _words is None:
        path = os.environ.get(VARIABLE)
        if not path:
            return False
        _page = _mapped(path)
        _words = _page[:_NAME].cast("Q")
    return True


def _mapped(path: str) -> memoryview:
    import mmap

    with suppress(OSError, ValueError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(file, 0, _BYTES)  # a hole on a full disk would be SIGBUS at the first write
            return memoryview(mmap.mmap(file, _BYTES))
        finally:
            os.close(file)
    return memoryview(bytearray(_BYTES))


# --- the agent's side


def page_path(relay: str, round: int, rank: int) -> str:
    """Return the path of a worker's page, in the folder that is its agent's relay's."""
    return os.path.join(os.path.dirname(relay), f"progress.{round}.{rank}")


def page_again(path: str, number: int) -> str:
    """Return the path of the page of the same worker when it starts once more in its round."""
    folder, name = os.path.split(path)
    return os.path.join(folder, ".".join((*name.split(".")[:3], str(number))))


def read_page(path: str | None) -> Page:
    """Return what a worker's page says; nothing if there is none."""
    if path is None:
        return Page()
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            calls, spans, limit_s, name = _FORMAT.unpack(os.pread(file, _FORMAT.size, 0))
        finally:
            os.close(file)
    except (OSError, struct.error):
        return Page()
    if not spans & 1 or not limit_s > 0:
        return Page(calls)
    return Page(calls, spans, limit_s, name.rstrip(b"\0").decode(errors="replace"))
