"""The record of an exception that nobody catches: the error file, in the form that torch's @record writes and agents read.

The start-up code imports this after the exception and not before, and so does who calls a function (function.py). Whoever
writes the file first has written it: there is one record of one failure.
"""

import json
import os
import time
import traceback

TYPE_CHECKING = False  # as type checkers read it
if TYPE_CHECKING:
    from types import TracebackType

_TEXT_MAX = 1 << 20
"""At most this many characters of a message, and of a callstack its two ends."""
_SENT_MAX = 1 << 11
"""The same for a record that is sent, since no file can be written: JSON may spell a character with twelve."""


def leave(path: "str | None", error: BaseException, trace: "TracebackType | None") -> str:
    """Write the record of this exception, unless there is one. Return it if it cannot be written: then the report has it."""
    if path and os.path.exists(path):
        return ""
    if path:
        try:
            unfinished = f"{path}.{os.getpid()}"  # so that a file that exists is whole
            with open(unfinished, "w") as file:
                file.write(_record(error, trace, _TEXT_MAX))
            os.rename(unfinished, path)
            return ""
        except OSError:
            pass
    return _record(error, trace, _SENT_MAX)


def _record(error: BaseException, trace: "TracebackType | None", text_max: int) -> str:
    callstack = "".join(traceback.format_exception(type(error), error, trace))
    if len(callstack) > text_max:
        callstack = f"{callstack[: text_max // 2]}\n...\n{callstack[-text_max // 2 :]}"
    text = text_of(error)
    message = f"{type(error).__name__}{': ' if text else ''}{text}"[:text_max]
    extra = {"py_callstack": callstack, "timestamp": str(int(time.time()))}
    return json.dumps({"message": {"message": message, "extraInfo": extra}})


def text_of(value: object) -> str:
    """Return a value as text, else its representation, else nothing."""
    for says in (str, repr):
        try:
            return says(value)
        except Exception:  # noqa: BLE001 whatever a user's class raises
            continue
    return ""
