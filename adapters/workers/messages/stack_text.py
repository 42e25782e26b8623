"""The text in which Python writes its stacks (faulthandler), and what people are shown of it: one place in one line.

    Thread 0x00007f0d3c7ff640 (most recent call first):
      File "/opt/site-packages/torch/distributed/distributed_c10d.py", line 2810 in all_reduce
      File "/home/me/train.py", line 120 in step

A program may name files and functions as it likes, and may write into the file itself. So nothing here raises, and what
comes out is bounded and printable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ....core.values import frozen
from ...terminal import printable

THREADS_MAX = 128
FRAMES_MAX = 128
"""So much of a text is read; faulthandler itself writes 100 of each at most."""
_HEAD = re.compile(r"(?P<current>Current thread|Thread|Stack)( 0x[0-9a-f]+.*)? \(most recent call first\):")
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>.*)')
_INSTALLED = re.compile(r"^<|/(site|dist)-packages/|/lib/python3(\.\d+)?/")
_NAME_MAX = 100


@frozen
class Frame:
    """A call that has not returned."""

    file: str
    line: str
    function: str

    @property
    def is_own(self) -> bool:
        """Return True for the user's own code: no installed package, and not Python's library."""
        return is_own(self.file)

    @property
    def place(self) -> str:
        return f"{_short(os.path.basename(self.file))}:{self.line}"


@frozen
class Thread:
    """One thread's frames, the innermost first. `is_current`: it is the one that wrote the text."""

    frames: tuple[Frame, ...] = ()
    is_current: bool = False


def is_own(file: str) -> bool:
    """Return True for a file of the user's own code."""
    return _INSTALLED.search(file) is None


def threads(text: str) -> tuple[Thread, ...]:
    """Return the threads in the order of the text. Lines that are no frames are left out."""
    found: list[tuple[bool, list[Frame]]] = []
    for line in text.split("\n"):
        if head := _HEAD.fullmatch(line):
            if len(found) == THREADS_MAX:
                break
            found.append((head["current"] == "Current thread", []))
        elif found and len(found[-1][1]) < FRAMES_MAX and (frame := _FRAME.fullmatch(line)):
            found[-1][1].append(Frame(frame["file"], frame["line"], frame["function"]))
    return tuple(Thread(tuple(frames), is_current) for is_current, frames in found)


def main_thread(text: str) -> Thread:
    """Return the main thread: the oldest one, which stands last. Of a text that was cut it is the one that wrote it."""
    every = threads(text)
    current = [thread for thread in every if thread.is_current]
    if "..." in text.split("\n") and current:
        return current[0]
    return every[-1] if every else Thread()


def place(frames: Sequence[Frame]) -> str:
    """Return where a thread is: the innermost function, and the line of the user's own code that led there."""
    if not frames:
        return "outside Python"
    inner = frames[0]
    own = next((frame for frame in frames if frame.is_own), inner)
    at = f"{own.place} in {_short(own.function)}"
    return f"at {at}" if own is inner else f"in {_short(inner.function)} ({at})"


def as_traceback(frames: Sequence[Frame]) -> str:
    """Return the frames as a traceback has them, the innermost last."""
    return "".join(
        f'  File "{printable(frame.file)}", line {frame.line}, in {printable(frame.function)}\n'
        for frame in reversed(frames)
    )


def _short(name: str) -> str:
    return printable(name[:_NAME_MAX])[:_NAME_MAX]
