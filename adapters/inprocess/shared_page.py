"""The page of memory that a wrapped process shares with its monitor. Each word of it has one writer.

The writers are the main thread, which runs the user's function; the driver, the thread that decides for it; and the monitor
process. A word is eight bytes, aligned, and is stored and read through a memoryview of format `Q` as one machine word. So
nobody reads half a value, and reading needs no lock. Words that must be seen together belong to the main thread alone
(`gate`), or are read twice (`seen`).

Points in time are nanoseconds of CLOCK_MONOTONIC, which all processes of a host share. Durations are nanoseconds. 0 is none.
The memory is a file without a name: a program that inherits its descriptor maps the same page.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from typing import Final

from ...core.inprocess.monitoring import Bye, Sight
from .user_stack import own

WORDS: Final = 32
BYTES: Final = 8 * WORDS
STDERR: Final = 2
NS: Final = 1_000_000_000
"""Nanoseconds in a second."""

# the main thread's words
ARMED: Final = 0
"""The token of the span whose user code runs now; 0 while the main thread is in the wrapper. No token is used twice."""
ROUND: Final = 1
"""The round of that span."""
COUNTS: Final = 2
"""1 if the progress of that span counts."""
ACTIVE: Final = 3
"""1 if this rank is active in that round; 0 for a reserve."""
DEPTH: Final = 4
"""How many atomic sections the main thread is in."""
STAMP: Final = 5
"""When user code last made progress."""
SOFT: Final = 6
"""How long it may make no progress before its round is ended; 0: no limit."""
HARD: Final = 7
"""How long it may make no progress before the process is killed; 0: no limit."""
OVER: Final = 15
"""The token of the last span that ended; written before `ARMED` is cleared."""
LAPSED: Final = 16
"""The token of the last span that made progress again after it had made none for `SOFT`."""

# the driver's words
WANT: Final = 8
"""The token of the span that must end."""
LEAVING: Final = 9
"""1: this rank is leaving the job; its reason is in its report. 2: and the launcher replaces its process."""
GOES_REPLACED: Final = 2
BYE: Final = 10
"""A `Bye`."""
UNWIND_AT: Final = 11
"""When the process is killed unless the span that must end has ended."""
RANK: Final = 12
"""Its rank in the last world."""
WORLD_SIZE: Final = 18
ENTERED: Final = 17
"""When it entered that world."""

# the monitor's words
WANT_MONITOR: Final = 13
"""The same as `WANT`, written by the monitor while the driver is silent."""
HUNG: Final = 14
"""1 once the monitor sends SIGTERM because a limit was passed. The program's handler may raise anything then."""


def to_inherit(descriptor: int) -> int:
    """Return the descriptor under a number that a child's standard streams do not take: here one may be closed."""
    if descriptor > STDERR:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
    finally:
        os.close(descriptor)


class Page:
    """The mapped page. `words` is its content as integers. A program that inherits the two descriptors maps the same
    page."""

    def __init__(self, descriptor: int, bell: int) -> None:
        self.descriptor = descriptor
        self.bell = bell
        self.words = memoryview(mmap.mmap(descriptor, BYTES)).cast("Q")

    @classmethod
    def new(cls) -> Page:
        """Return a page of zeros. Raises OSError if the process has no descriptor left."""
        descriptor = to_inherit(os.memfd_create("elastic-inprocess"))
        os.ftruncate(descriptor, BYTES)
        return cls(descriptor, to_inherit(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)))

    @property
    def is_private(self) -> bool:
        """True in a forked child, which has no monitor."""
        return self.bell == -1

    @own
    def ring(self) -> None:
        """Wake the monitor, if there is one."""
        if self.bell != -1:
            os.eventfd_write(self.bell, 1)

    def heard(self) -> None:
        """Silence the bell; the monitor does so before it looks."""
        try:
            os.eventfd_read(self.bell)
        except BlockingIOError:
            pass  # nobody had rung

    def part(self) -> None:
        """Continue with a private copy, in a forked child: nothing that it writes reaches its parent."""
        self.words = memoryview(bytearray(self.words.tobytes())).cast("Q")
        self.bell = -1

    def close(self) -> None:
        """Close the descriptors, and continue with a private page: a signal's handler may still look at it."""
        bell, self.bell = self.bell, -1
        self.words = memoryview(bytearray(BYTES)).cast("Q")
        os.close(self.descriptor)
        os.close(bell)


def seen(words: memoryview[int]) -> Sight:
    """Return what the page shows at one moment. The main thread writes a token last and clears it first, so the words that
    are read between two equal reads of the token are of one span. Repeat until that is so."""
    while True:
        armed = words[ARMED]
        sight = Sight(
            token=armed,
            round=words[ROUND],
            guarded=bool(words[COUNTS]),
            active=bool(words[ACTIVE]),
            stamp=words[STAMP] / NS,
            soft_s=words[SOFT] / NS or math.inf,
            hard_s=words[HARD] / NS or math.inf,
            wanted=words[WANT] == armed,
            leaving=bool(words[LEAVING]),
            replaced=words[LEAVING] == GOES_REPLACED,
            bye=Bye(words[BYE]),
            unwind_at=words[UNWIND_AT] / NS or math.inf,
        )
        if words[ARMED] == armed:
            return sight
