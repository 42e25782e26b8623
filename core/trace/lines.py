"""The lines of a trace: NDJSON, a header, then one line per step, in the order of the steps.

Lines are bounded and checked. A state that equals the last one written is referred to by its version. A line that was cut
off by the end of its agent is no error: it has no end, or the next agent that writes to the file has marked it (`CUT`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from ..rendezvous import RendezvousState
from ..rendezvous.codec import BYTES_MAX, encode_plain
from .forms import Repeated
from .plain import made, plain, registers
from .steps import Header, Step, Trace, Worked, step_at

NAME = "elastic trace"
FORMAT = 11
READERS = {4: "elastic 0.1.0", 8: "elastic 0.3.0"}
"""Format -> the version of elastic that reads it, for formats that this version does not read."""
LINE_MAX = 2 * BYTES_MAX
"""A longer line is refused unread."""
CLOCK_MAX_S = 1e12
"""No clock of a host shows as much: some 30,000 years."""
CUT = b" ... cut off\n"
"""The end of a line that its writer did not finish."""
SAME = "same"
"""The key of a reference: the version of the last state written."""


class Corrupt(ValueError):
    """A line that no agent of this version has written."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")


# --- out


def encoded(step: Header | Step, last: RendezvousState | None) -> tuple[bytes, RendezvousState | None]:
    """Return the line of a step, and the state that a later line may refer to; `last` is the one that an earlier line
    wrote."""
    data = plain(step, Header | Step)
    for place, key in registers(data):
        state = place[key]
        place[key] = {SAME: state.version} if state == last else msgspec.Raw(encode_plain(state))
        last = state
    return msgspec.json.encode(data) + b"\n", last


# --- in


def traces(lines: Iterable[bytes | Repeated]) -> Iterator[Trace]:
    """Yield the traces of one file, one after the other. Raises Corrupt."""
    header: Header | None = None
    steps: list[tuple[int, Step]] = []
    cut = False
    for number, entry in entries(lines):
        if entry is None:
            cut = True
        elif isinstance(entry, Header):
            if header:
                yield _trace(header, steps, cut)
            header, steps, cut = entry, [], False
        elif header:
            steps.append((number, entry))
        else:
            raise Corrupt(number, "a step before any header")
    if header is None:
        raise Corrupt(1, "no header: it is empty, or no trace")
    yield _trace(header, steps, cut)


def streams(lines: Iterable[bytes | Repeated]) -> Iterator[tuple[Header, Iterator[Step]]]:
    """Yield the header of each trace of one file with its steps. They are read as they are taken, and those that are not
    taken are passed over with the next header. Raises Corrupt."""
    headers = 0

    def trace(entry: tuple[int, Header | Step]) -> int:
        nonlocal headers
        headers += isinstance(entry[1], Header)
        return headers

    for _, those in groupby(_whole(lines), trace):
        yield _stream(those)
    if not headers:
        raise Corrupt(1, "no header: it is empty, or no trace")


def _stream(entries: Iterator[tuple[int, Header | Step]]) -> tuple[Header, Iterator[Step]]:
    number, header = next(entries)
    if not isinstance(header, Header):
        raise Corrupt(number, "a step before any header")
    return header, (entry for _, entry in entries if not isinstance(entry, Header))


def _whole(lines: Iterable[bytes | Repeated]) -> Iterator[tuple[int, Header | Step]]:
    """Yield the entries of whole lines."""
    return ((number, entry) for number, entry in entries(lines) if entry is not None)


def entries(lines: Iterable[bytes | Repeated]) -> Iterator[tuple[int, Header | Step | None]]:
    """Yield the number of each line, with the header or step that it holds; None if it was cut off. Raises Corrupt."""
    last: RendezvousState | None = None
    for number, line in enumerate(lines, 1):
        if isinstance(line, Repeated):
            if (step := line.step) and _is_timed(step):
                yield number, step
                continue
            line = line.whole
        if len(line) <= LINE_MAX and (not line.endswith(b"\n") or line.endswith(CUT)):
            yield number, None
            continue
        entry, last = _checked(number, line, last)
        if isinstance(entry, Header):
            last = None
        yield number, entry


def _trace(header: Header, steps: Sequence[tuple[int, Step]], cut: bool) -> Trace:
    return Trace(header, tuple(step for _, step in steps), tuple(number for number, _ in steps), cut)


def _checked(number: int, line: bytes, last: RendezvousState | None) -> tuple[Header | Step, RendezvousState | None]:
    try:
        return decoded(line, last)
    except UnicodeDecodeError:
        raise Corrupt(number, "text that is not UTF-8") from None
    except (ValueError, RecursionError) as reason:
        raise Corrupt(number, str(reason)) from None


def decoded(line: bytes, last: RendezvousState | None) -> tuple[Header | Step, RendezvousState | None]:
    """Return the step of a line, and the state that a later line may refer to. Raises ValueError."""
    if len(line) > LINE_MAX:
        raise ValueError(f"more than the {LINE_MAX} bytes that a line may have")
    data = msgspec.json.decode(line, type=dict[str, Any])
    if (found := data.get("format", FORMAT)) != FORMAT or data.get("name", NAME) != NAME:
        reader = next((f" (that is read by {READERS[old]})" for old in READERS if old == found), "")
        raise ValueError(
            f"{data.get('name', NAME)!r} of format {found!r}{reader}; this version reads {NAME!r} of format {FORMAT}"
        )
    for place, key in registers(data):
        last = place[key] = _state(place[key], last)
    entry: Header | Step = made(data, Header | Step)
    if not _is_timed(entry):
        raise ValueError("a time that no clock shows")
    return entry, last


def _is_timed(entry: Header | Step) -> bool:
    """Return True if clocks show the times of this line."""
    first, last = _times(entry)
    return -CLOCK_MAX_S < first < CLOCK_MAX_S and -CLOCK_MAX_S < last < CLOCK_MAX_S


def _times(entry: Header | Step) -> tuple[float, float]:
    """Return the times of a line between which all lie that anybody computes with."""
    match entry:
        case Header(now=now, wall=wall):
            return now, wall
        case Worked(began_at=began_at, at=at):
            return began_at, at
        case step:
            return (at := step_at(step)), at


def _state(data: Any, last: RendezvousState | None) -> RendezvousState:
    if not (isinstance(data, dict) and data.keys() == {SAME}):
        state: RendezvousState = made(data, RendezvousState)
        return state
    if last is None or data[SAME] != last.version:
        raise ValueError(f"refers to version {data[SAME]!r}, which is not the last one written")
    return last
