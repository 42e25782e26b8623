"""Where the user's code stands, for whoever reads the log: the main thread's now, or an error's that ended it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable
from traceback import StackSummary
from types import CodeType, FrameType

from .own_code import OWN


def stack(thread: int, below: CodeType) -> StackSummary:
    """What a thread runs below this code, the outermost call first; nothing if it does not run it."""
    steps = list(traceback.walk_stack(sys._current_frames().get(thread)))
    depth = next((number for number, (frame, _) in enumerate(steps) if frame.f_code is below), 0)
    return _users(reversed(steps[:depth]))


def raised_at(error: BaseException, below: CodeType) -> StackSummary:
    """Where an error came from, below this code."""
    steps = list(traceback.walk_tb(error.__traceback__))
    depth = next((number for number, (frame, _) in enumerate(steps, 1) if frame.f_code is below), len(steps))
    return _users(steps[depth:])


def _users(steps: Iterable[tuple[FrameType, int]]) -> StackSummary:
    """Without the wrapper's own."""
    return StackSummary.extract((step for step in steps if id(step[0].f_code) not in OWN), lookup_lines=False)


def place(error: BaseException) -> str:
    """Where it was raised, in half a line."""
    return innermost(traceback.extract_tb(error.__traceback__))


def innermost(frames: StackSummary) -> str:
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""


def told(frames: StackSummary) -> str:
    """As a traceback shows it; nothing where there is nothing to show."""
    return f", at\n{''.join(frames.format()).rstrip()}" if frames else ""
