"""Holds what a worker says of its work, in a page of memory that it shares with its agent.

ELASTIC_PROGRESS names the page's file. The worker makes it at its first call, and from then on a call is a write to memory.
The agent reads the file (`pages.py`): now and then under --hang-timeout, and else when the worker has ended. The page
belongs to the first process that calls. Of others that find it, forked or executed, only the number of calls of progress
counts. Points in time are of CLOCK_MONOTONIC, which all processes of a host share; 0 is none. A step is written as one more,
so that 0 is none, too.
"""

from __future__ import annotations

import math
import os
import struct
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import index
from time import monotonic
from typing import Final, SupportsIndex

VARIABLE = "ELASTIC_PROGRESS"
"""The variable that tells a worker the page's path."""
STEP_MAX: Final = 2**63 - 1
NAMES_MAX: Final = 8
"""The number of names of busy spans that are told apart. The others share the last place of the table."""
NAME_BYTES: Final = 100
OTHER: Final = "other"
"""The name of the last place."""

# the words of a page: first those that the hang watch reads
CALLS: Final = 0
"""How often progress was called."""
SPAN: Final = 1
"""Twice the number of the innermost busy span, and 1 more while it is open. Then its limit and its name."""
LIMIT: Final = 2
NAME: Final = 24
WATCHED: Final = struct.Struct(f"=QQd{NAME_BYTES}s")
FIRST_AT, FIRST_BUSY, PASSED_AT, PASSED_BUSY, LAST_AT, LAST_BUSY = range(16, 22)
"""When progress was called first, first with a step above `BEFORE`, and last; and how long the worker had been busy then."""
FIRST_STEP, STEP, SAVED, SAVES = range(22, 26)
"""The first step, the highest, the highest that is safe, and how often a higher one became so."""
SAVED_AT: Final = 26
"""When that was last."""
BEFORE: Final = 27
"""The highest step of an earlier start. The agent alone writes it, before the worker begins."""
SINCE: Final = 28
"""Since when the innermost busy span counts: the time of those before it is in the table."""
OWNER: Final = 29
"""The process id of the owner."""
TABLE: Final = 30
"""The seconds of busy spans, name by name; then their names."""
NAMES: Final = 8 * (TABLE + NAMES_MAX + 1)
BYTES: Final = NAMES + NAME_BYTES * NAMES_MAX

_page: memoryview | None = None
"""The page that this process owns."""
_other: memoryview[int] | None = None
"""The words of a page that another process owns."""
_words: memoryview
_times: memoryview[float]
# what this process has written: reading it back from the page takes longer than to keep it
_calls = 0
_step = 0
_saved = 0
_saves = 0
_passes_at: float = math.inf
"""The lowest step that no earlier start had reached; inf: it has been passed, or no step had been reached."""
_busy_s = 0.0
_since = 0.0
_place: int | None = None
"""The place of the span that counts now."""
_is_marked = False
"""True if the first progress is marked, and there was no busy span since the last one."""
_places: dict[bytes, int] = {}
"""The places of names in the table."""
_open_spans: list[tuple[str, float, int]] = []
"""Name, limit and thread of each."""


def progress(step: SupportsIndex | None = None) -> None:
    """Say that this worker makes progress, and which step it has done. Call it in each step; it takes under a microsecond.

    Steps have the numbers by which the training counts them, from 0 or 1 on, through all epochs. A step that is done again
    after a restart has its number again, so the launcher knows which work was lost. The first process of a worker that calls
    speaks for it: of forks and subprocesses no step counts. Under --hang-timeout a script that calls this says all there
    is to say: its output counts no longer. Without a launcher this does nothing.
    """
    global _calls, _step
    if step is not None and (type(step) is not int or not 0 <= step <= STEP_MAX):
        step = _number("progress", step)
    if _page is None and not _has_page():
        if _other is not None:
            _other[CALLS] += 1
        return
    now = monotonic()
    if not _is_marked:
        _mark(now)
    if step is not None and step >= _step:
        if not _step:
            _words[FIRST_STEP] = step + 1
        if step >= _passes_at:
            _pass(now)
        _step = _words[STEP] = step + 1
    _times[LAST_AT] = now
    _calls = _words[CALLS] = _calls + 1


def _mark(now: float) -> None:
    """Mark how long the worker had been busy at this progress, and when the first one was. If this thread is in no span, the
    spans of others stop no training: their time up to now counts as none."""
    global _is_marked, _since
    if _place is not None and all(thread != get_ident() for *_, thread in _open_spans):
        _since = _times[SINCE] = now
    busy_s = _busy_by(now)
    if not _calls:
        _times[FIRST_BUSY], _times[FIRST_AT] = busy_s, now
    _times[LAST_BUSY] = busy_s
    _is_marked = _place is None


def _pass(now: float) -> None:
    """Mark that this progress passes what an earlier start had reached."""
    global _passes_at
    _times[PASSED_BUSY], _times[PASSED_AT] = _busy_by(now), now
    _passes_at = math.inf


def _busy_by(now: float) -> float:
    return _busy_s if _place is None else _busy_s + now - _since


def saved(step: SupportsIndex) -> None:
    """Say that the work up to this step is safe: a restart can begin after it. Call it when the checkpoint is whole."""
    global _saved, _saves
    number = _number("saved", step)
    if (_page is not None or _has_page()) and number >= _saved:
        _times[SAVED_AT] = monotonic()
        _saves = _words[SAVES] = _saves + 1
        _saved = _words[SAVED] = number + 1


def _number(function: str, step: object) -> int:
    """Return a step as an int. numpy's integers are steps, too; a bool is none."""
    try:
        number = None if isinstance(step, bool) else int(index(step))  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{function}: a step is an integer, not {step!r} ({type(step).__name__})")
    if not 0 <= number <= STEP_MAX:
        raise ValueError(f"{function}: a step is an integer from 0 to 2**63 - 1, not {step!r}")
    return number


@contextmanager
def busy(name: str, limit: float) -> Iterator[None]:
    """Mark a span in which this worker makes no progress for `limit` seconds at most: a checkpoint, a compilation.

    Within it `limit` counts instead of --hang-timeout. Spans may stand in each other: the innermost counts. Mark what stops
    the training. A span in a thread beside it, such as an asynchronous checkpoint, is busy time only from the last call of
    `progress` outside of any span: up to that call the worker has trained.
    """
    if not isinstance(name, str):
        raise TypeError(f"busy: a name is a str, not {name!r} ({type(name).__name__})")
    span = (name, _limit(limit), get_ident())
    _open_spans.append(span)
    try:
        _tell()
        yield
    finally:
        _open_spans.remove(span)  # that of another thread may have begun since
        _tell()


def _limit(limit: object) -> float:
    """Return a limit in seconds, which may be of any type that is a number."""
    if not hasattr(limit, "__float__") and not hasattr(limit, "__index__"):
        raise TypeError(f"busy: a limit is a number of seconds, not {limit!r} ({type(limit).__name__})")
    seconds = float(limit)  # type: ignore[arg-type]
    if not seconds > 0:
        raise ValueError(f"busy: a limit above 0 seconds, not {limit!r}")
    return seconds


def _tell() -> None:
    """Write the innermost span. Its number comes last, so that the agent finds the limit that belongs to it."""
    global _place, _is_marked
    if not _has_page() or _page is None:
        return
    _count()
    _is_marked = False
    number = _words[SPAN] >> 1
    if not _open_spans:
        _place = None
        _words[SPAN] = number << 1
        return
    name, limit, _ = _open_spans[-1]
    told = name.encode(errors="replace")[:NAME_BYTES].decode(errors="ignore").encode()
    _place = _place_of(told)
    _page[NAME : NAME + NAME_BYTES] = told.ljust(NAME_BYTES, b"\0")
    _times[LIMIT] = limit
    _words[SPAN] = number + 1 << 1 | 1


def _count() -> None:
    """Put the time of the span that counted so far into the table. If the worker dies meanwhile, it is lost rather than
    counted twice."""
    global _since, _busy_s
    now, since = monotonic(), _since
    _since = _times[SINCE] = now
    if _place is not None:
        _times[TABLE + _place] += now - since
        _busy_s += now - since


def _place_of(name: bytes) -> int:
    """Return the place of a name in the table; the last place is that of all names for which there is none."""
    place = _places.get(name)
    if place is None:
        if _page is None or len(_places) == NAMES_MAX:
            return NAMES_MAX
        place = _places[name] = len(_places)
        begins = NAMES + NAME_BYTES * place
        _page[begins : begins + NAME_BYTES] = name.ljust(NAME_BYTES, b"\0")
    return place


def _has_page() -> bool:
    """Return True if this process owns a page. It is mapped once. If none can be made, memory of this process takes its
    place."""
    global _words, _times, _page, _other, _passes_at
    if _page is None and _other is None:
        path = os.environ.get(VARIABLE)
        if not path:
            return False
        page = _mapped(path)
        words = page[:NAMES].cast("Q")
        if words[OWNER] not in (0, os.getpid()):
            _other = words
            return False
        words[OWNER] = os.getpid()
        _words, _times = words, page[:NAMES].cast("d")
        _passes_at = words[BEFORE] or math.inf
        _page = page
    return _page is not None


def _forked() -> None:
    """Forget the page, which is the parent's: at its first call a forked child finds out what page there is for it."""
    global _page, _other, _place, _calls, _step, _saved, _saves, _busy_s, _is_marked
    _page = _other = _place = None
    _calls = _step = _saved = _saves = 0
    _busy_s, _is_marked = 0.0, False
    _places.clear()


os.register_at_fork(after_in_child=_forked)


def _mapped(path: str) -> memoryview:
    import mmap

    with suppress(OSError, ValueError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(file, 0, BYTES)  # a hole on a full disk would be SIGBUS at the first write
            return memoryview(mmap.mmap(file, BYTES))
        finally:
            os.close(file)
    return memoryview(bytearray(BYTES))
