"""The reason of a worker's failure, out of what it left behind: its error file, the end of its stderr, its exit code.

The error file is torch's (`@record`): `{"message": {"message": …, "extraInfo": {"py_callstack": …, "timestamp": …}}}`,
or a message that is plain text with a timestamp beside it. Nobody needs the timestamp. A worker may have died while
writing it, or anything else may stand there, so it is read bounded and checked. An unreadable file is a finding too, never
an exception. Without the file, an uncaught exception is found at the end of stderr.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ....core.values import frozen
from ....core.world import Fault, Origin
from .stack_text import is_own

_ERROR_FILE_BYTES_MAX = 1 << 24
RAISED = 1
"""The exit code of a Python that ends by an exception."""
STILL_RUNNING = "still running"
"""The remark on a worker that elastic has ended after its exception begins so."""


@frozen
class ErrorFile:
    """A worker's own account of its end. `where` is like "train.py:88 in step"."""

    message: str
    where: str = ""
    callstack: str = ""


@frozen
class _Extra:
    py_callstack: str = ""


@frozen
class _Message:
    message: Any
    extraInfo: _Extra = _Extra()


@frozen
class _Record:
    message: _Message | str


def read_error_file(path: Path) -> ErrorFile | None:
    """Return what the file says, or why it cannot be read; None if there is no such file."""
    try:
        data = _error_bytes(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _unreadable(path, error.strerror or str(error))
    if len(data) > _ERROR_FILE_BYTES_MAX:
        return _unreadable(path, f"longer than {_ERROR_FILE_BYTES_MAX} bytes")
    return _parse(path, data) if data.strip() else _unreadable(path, "empty")


def read_record(data: bytes) -> ErrorFile | None:
    """Return what a record says that a worker has sent, since it could not write the file; None for no record."""
    return _parse(Path("that was sent"), data) if data else None


def leave_error_file(path: Path | None, message: str, callstack: str = "") -> None:
    """Write why a worker ends, where `@record` does not say it. A file that exists stays: it came first."""
    if path is None:
        return
    extra = {"py_callstack": callstack, "timestamp": str(int(time.time()))}
    try:
        with open(path, "x") as file:
            json.dump({"message": {"message": message, "extraInfo": extra}}, file)
    except OSError:
        pass  # its exit code will be in the report all the same


def _parse(path: Path, data: bytes) -> ErrorFile:
    import msgspec

    with suppress(ValueError, RecursionError):
        data = _as_text(data)
    try:
        record = msgspec.json.decode(data, type=_Record)
        if isinstance(record.message, str):
            return ErrorFile(record.message)
        message = record.message.message
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # UnicodeDecodeError, and too many digits
        return _unreadable(path, str(error))
    callstack = record.message.extraInfo.py_callstack
    return ErrorFile(text, _where(callstack), callstack)


def _as_text(data: bytes) -> bytes:
    """Return this JSON with `?` for each half of a surrogate pair, which is no text. Raises ValueError, RecursionError."""
    return json.dumps(json.loads(data), ensure_ascii=False).encode(errors="replace")


def _error_bytes(path: Path) -> bytes:
    """Return at most one byte more than allowed. A pipe in the file's place must not block. Raises OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "not a regular file")
        return os.pread(file.fileno(), _ERROR_FILE_BYTES_MAX + 1, 0)


def _unreadable(path: Path, why: str) -> ErrorFile:
    return ErrorFile(f"the error file {path} is unreadable: {why}")


def error_data(fault: Fault) -> dict[str, Any]:
    """Return what a failure's error file holds, if it is on this host; else as much of it as the job has on record."""
    if not fault.error_file:
        return {"message": "<NONE>"}
    with suppress(OSError, ValueError, RecursionError):
        data = json.loads(_as_text(_error_bytes(Path(fault.error_file))))
        if isinstance(data, dict):
            return data
    return _on_record(fault)


def reply(fault: Fault) -> dict[str, Any]:
    """Return what the launcher's own error file says of the first cause, with its exit code, as torchrun's does."""
    data = error_data(fault) if fault.error_file else _on_record(fault)
    if isinstance(message := data.get("message"), dict):
        message["errorCode"] = failure_code(fault)
    return data


def failure_code(fault: Fault) -> int:
    """Return the exit code of a failure: after an exception it is Python's, also if a signal ended the process then."""
    if fault.exit_code is None or (fault.origin is Origin.RAISE and fault.exit_code < 0):
        return RAISED
    return fault.exit_code


def _on_record(fault: Fault) -> dict[str, Any]:
    extra = {"py_callstack": fault.callstack, "timestamp": str(timestamp(fault))}
    return {"message": {"message": fault.message, "extraInfo": extra}}


def timestamp(fault: Fault) -> int:
    """Return when a failure was put on record, in Unix seconds, read as this host's local time; 0 if it cannot be read."""
    with suppress(ValueError):
        return int(datetime.fromisoformat(fault.when).timestamp())
    return 0


_HEAD = "Traceback (most recent call last):"
_FRAME = re.compile(r'^(?P<margin>.*?)  File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')


def _where(callstack: str) -> str:
    return _place(frames[-1]) if (frames := _last_frames(callstack.splitlines())) else ""


def _last_frames(lines: Sequence[str]) -> list[re.Match[str]]:
    """Return the frames of the last traceback, up to the innermost one of the user's own code. If none is, return all."""
    begins = [index for index, line in enumerate(lines) if _HEAD in line]
    found = [frame for line in lines if (frame := _FRAME.match(line))]
    for begin in reversed(begins):
        if frames := [frame for line in lines[begin:] if (frame := _FRAME.match(line))]:
            found = frames
            break
    own = [index for index, frame in enumerate(found) if is_own(frame["file"])]
    return found[: own[-1] + 1] if own else found


def _place(frame: re.Match[str]) -> str:
    place = f"{os.path.basename(frame['file'])}:{frame['line']}"
    return f"{place} in {frame['function']}" if frame["function"] else place


def last_exception(lines: Sequence[str]) -> tuple[str, str]:
    """Return message and place of the last uncaught exception in the end of a log; empty if there is none.

    Its first frames may have been cut off, and each line may stand behind a margin (torch writes `[rank0]: `). After
    the last frame come its source lines, indented; the first line that is not is the exception.
    """
    frames = [(index, frame) for index, line in enumerate(lines) if (frame := _FRAME.match(line))]
    if not frames:
        return "", ""
    index, frame = frames[-1]
    following = (line.removeprefix(frame["margin"]) for line in lines[index + 1 :])
    message = next((line for line in following if line and not line.startswith(" ")), "")
    return message, _place(_last_frames(lines)[-1])


def exit_sentence(code: int | None) -> str:
    """Return an exit code in words. `code` is subprocess's: negative for a signal. None: the worker raised, and has not
    ended yet."""
    if code is None:
        return "uncaught exception"
    return f"exit code {code}" if code >= 0 else f"killed by {signal_name(-code)}"


def end_sentence(fault: Fault) -> str:
    """Return how a worker failed, in words: one that raised may have been ended by something else since, and one whose
    interpreter had begun to end did so by itself. The remark says if elastic ended one that raised."""
    ended = exit_sentence(fault.exit_code)
    match fault.origin:
        case Origin.RAISE if fault.remark.startswith(STILL_RUNNING):
            return exit_sentence(None)
        case Origin.RAISE if fault.exit_code not in (None, RAISED):
            return f"uncaught exception, then {ended}"
        case Origin.ENDING:
            return f"ended by itself, {ended}" if (fault.exit_code or 0) >= 0 else f"{ended} while it ended"
        case _:
            return ended


def signal_name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        low, high = int(signal.SIGRTMIN), int(signal.SIGRTMAX)
        return f"SIGRTMIN+{signum - low}" if low < signum < high else f"signal {signum}"
