"""The user's code on the main thread: which frames are the user's, which are the wrapper's, and where the user's code is.

The wrapper marks its own functions with `own`. An exception that is raised into user code never lands in a marked function,
although user code called it. A context manager that user code enters is therefore a class with marked methods: a generator
would bring frames of `contextlib` along. The functions that lock a handler of `logging` are marked as well: a handler that
stays locked blocks every thread that logs, the driver too.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from traceback import StackSummary
from types import FrameType, FunctionType
from typing import Final, ParamSpec, TypeVar, cast

OWN: Final[set[int]] = set()
"""The ids of the marked code objects, which live as long as the program. Hashing a code object takes a microsecond."""
IMPORTS: Final = "<frozen importlib._bootstrap>"
"""The file name of a frame that every import has, also one that a custom loader carries out."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


def own(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Mark a function of the wrapper that may run while user code runs."""
    OWN.add(id(cast(FunctionType, function).__code__))
    return function


own(logging.Handler.acquire)
own(logging.Handler.release)


def call_users(code: Callable[[], object]) -> object:
    """Call the user's code. This frame is the outermost in which an injected exception may land."""
    return code()


USERS: Final = call_users.__code__


@own
def is_users(frame: FrameType | None) -> bool:
    """Return True if the interrupted code is the user's: no frame between it and `call_users` is the wrapper's, or that of a
    destructor, which no exception leaves: Python prints it, and goes on.

    The innermost frame alone does not tell: a tracing function or a destructor may run on top of the wrapper's frame.
    """
    return all(id(each.f_code) not in OWN and each.f_code.co_name != "__del__" for each in _above_users(frame))


@own
def is_importing(frame: FrameType | None) -> bool:
    """Return True if the user's code is importing a module. The user's code may itself have been called by an import."""
    return any(each.f_code.co_filename == IMPORTS for each in _above_users(frame))


@own
def _above_users(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames from this one outwards, up to the one that `call_users` called."""
    while frame is not None and frame.f_code is not USERS:
        yield frame
        frame = frame.f_back


def stack(thread: int, whole: bool = False) -> StackSummary:
    """Return the user's stack on this thread, the outermost call first; an empty one if no user code runs there. `whole`:
    also what called it, and what runs between two spans of user code."""
    steps = list(traceback.walk_stack(sys._current_frames().get(thread)))
    depth = next((number for number, (frame, _) in enumerate(steps) if frame.f_code is USERS), 0)
    return _without_own(reversed(steps if whole else steps[:depth]))


def raised_at(error: BaseException) -> StackSummary:
    """Return the user's stack at the point where this error was raised."""
    steps = list(traceback.walk_tb(error.__traceback__))
    depth = next((number for number, (frame, _) in enumerate(steps, 1) if frame.f_code is USERS), len(steps))
    return _without_own(steps[depth:])


def _without_own(steps: Iterable[tuple[FrameType, int]]) -> StackSummary:
    return StackSummary.extract((step for step in steps if id(step[0].f_code) not in OWN), lookup_lines=False)


def related(error: BaseException | None) -> Iterator[BaseException]:
    """Yield this error, the members of a group, what caused it, and what was being handled when it was raised: each once."""
    found, seen = [error], set[int]()
    while found:
        each = found.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        members = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        found += (*members, each.__cause__, each.__context__)


def place(error: BaseException) -> str:
    """Return where this error was raised, as `file:line in function`."""
    return innermost(StackSummary.extract(traceback.walk_tb(error.__traceback__), limit=-1, lookup_lines=False))


def innermost(frames: StackSummary) -> str:
    """Return the innermost frame as `file:line in function`; an empty text for an empty stack."""
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""


def appended(frames: StackSummary) -> str:
    """Return the stack as a traceback shows it, to be appended to a line of the log; an empty text for an empty stack."""
    return f", at\n{''.join(frames.format()).rstrip()}" if frames else ""
