"""The page that a wrapped process shares with its monitor: what each says of itself, one word each, each with one writer.

M is the main thread, which runs the user's function; T the thread that decides for it; P the monitor process. A word is
eight bytes, aligned, and stored or read through a memoryview of format `Q` as one machine word, so nobody ever reads half a
value and nobody needs a lock to read. What must be seen together is M's alone (`gate`), or is read twice (`Seen.of`).

Points in time are nanoseconds of CLOCK_MONOTONIC, which all processes of a host share; spans of time are nanoseconds; 0 is
none. The memory is a file without a name: a program that is handed its descriptor maps the same page.
"""

from __future__ import annotations

import mmap
import os
from enum import IntEnum
from typing import Final

from attrs import frozen

from .own_code import own

WORDS: Final = 32
BYTES: Final = 8 * WORDS
NS: Final = 1_000_000_000
"""In a second."""

# M's words
ARMED: Final = 0
"""The token of the span whose user code runs now; 0 while M is in the wrapper. Never the same twice in a process."""
ROUND: Final = 1
"""The round of that span."""
SPAN: Final = 2
"""A `Span`."""
ACTIVE: Final = 3
"""Whether this rank is active in that round; a reserve is not."""
DEPTH: Final = 4
"""How many atomic sections M is inside of."""
STAMP: Final = 5
"""When the user's code last said that it gets on."""
SOFT: Final = 6
"""How long it may say nothing before its round is ended; 0: as long as it likes."""
HARD: Final = 7
"""How long it may say nothing before the process is killed; 0: as long as it likes."""
OVER: Final = 15
"""The token of the last span that ended; told before `ARMED` is cleared."""

# T's words
WANT: Final = 8
"""The token of the span that must end."""
LEAVING: Final = 9
"""This rank is leaving the job; its reason is in its report."""
BYE: Final = 10
"""A `Bye`."""
UNWIND_AT: Final = 11
"""When the process is killed unless the span that must end has ended."""
BEAT: Final = 12
"""When T was last seen at work."""

# P's words
WANT_P: Final = 13
"""As `WANT`, where T is silent."""
SUPERVISED: Final = 14
"""When P was last seen at work."""


class Span(IntEnum):
    """One stretch of user code on the main thread."""

    NONE = 0
    INITIALIZE = 1
    """`initialize` and the first health check."""
    FUNCTION = 2
    FINALIZE = 3
    CHECK = 4
    """The health check after a fault."""
    COMPLETION = 5
    TERMINATE = 6


class Bye(IntEnum):
    """How the wrapped call ended, for the monitor."""

    NOT_YET = 0
    SETTLED = 1
    """The register knows: this rank has left, or the job is closed."""
    UNSETTLED = 2
    """The register may still count on this rank."""


class Page:
    """The mapping. `words` is the page as whole numbers; a program that inherits the two descriptors maps the same page."""

    def __init__(self, descriptor: int, bell: int) -> None:
        self.descriptor = descriptor
        self.bell = bell
        self.words = memoryview(mmap.mmap(descriptor, BYTES)).cast("Q")

    @classmethod
    def new(cls) -> Page:
        """A page of zeros."""
        descriptor = os.memfd_create("elastic-inprocess")
        os.ftruncate(descriptor, BYTES)
        return cls(descriptor, os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))

    @own
    def ring(self) -> None:
        """Have the monitor look. In a forked child there is none."""
        if self.bell != -1:
            os.eventfd_write(self.bell, 1)

    def heard(self) -> None:
        """The monitor: silence the bell, before it looks."""
        try:
            os.eventfd_read(self.bell)
        except BlockingIOError:
            pass  # nobody had rung

    def part(self) -> None:
        """Go on with a copy of its own: what a forked child writes is not its parent's."""
        self.words = memoryview(bytearray(self.words.tobytes())).cast("Q")
        self.bell = -1

    def close(self) -> None:
        """A signal may still come: whoever looks finds a page of its own. The mapping goes with the last who looks at it."""
        bell, self.bell = self.bell, -1
        self.words = memoryview(bytearray(BYTES)).cast("Q")
        os.close(self.descriptor)
        os.close(bell)


@frozen
class Seen:
    """What one look at the page showed of the span under way; `armed` is 0 when there was none."""

    armed: int
    round: int
    span: Span
    active: bool
    depth: int
    stamp: int
    soft: int
    hard: int
    want: int
    leaving: bool
    bye: Bye
    unwind_at: int
    beat: int

    @classmethod
    def of(cls, words: memoryview[int]) -> Seen:
        """All of one span: M writes the token last and clears it first, so what stands between two reads of one token
        belongs to it. Tries until that is so."""
        while True:
            armed = words[ARMED]
            seen = cls._read(words, armed)
            if words[ARMED] == armed:
                return seen

    @classmethod
    def _read(cls, words: memoryview[int], armed: int) -> Seen:
        return cls(
            armed=armed,
            round=words[ROUND],
            span=Span(words[SPAN]),
            active=bool(words[ACTIVE]),
            depth=words[DEPTH],
            stamp=words[STAMP],
            soft=words[SOFT],
            hard=words[HARD],
            want=words[WANT],
            leaving=bool(words[LEAVING]),
            bye=Bye(words[BYE]),
            unwind_at=words[UNWIND_AT],
            beat=words[BEAT],
        )
