"""The gate: how a span of user code on the main thread is ended from outside, and nothing but user code ever is.

M, the main thread, arms the gate with the span's token, calls the user's code, and disarms it again. T, the thread that
decides, writes the token that must end and sends M a signal; P, the monitor process, does the same from outside. The
signal's handler runs in M, between two bytecodes, and raises `Injected` there if, at that moment,

    armed and (want = armed or want_p = armed)   this very span is wanted: tokens are never the same twice, so a late signal
                                                 or an old wish hits nothing
    depth = 0                                    M is in no atomic section
    the frame is the user's                      M is not in the wrapper, called by the user's code or about to return to it
    no import is under way                       a module left in the midst of its code stays broken for the process's life

Between that look and the raise M does nothing else, so nothing is raised once M has disarmed. A raise that is missed (the
signal came too early, was merged with another, was swallowed) is cured by sending it again; nothing is ever cleared but by
M's disarming. The user's code also meets the wish at its safe points: `check`, `ping`, the ends of sections. An import that
hangs is ended with the process, by a limit.

T writes its wish and then reads the depth, M writes the depth and then reads the wish, both under one lock: T sees that M is
in an atomic section, or M sees that it may not enter. So nothing is torn down under an atomic section.

What is raised goes into a frame of its own, `_users`, and is caught by the frame that called it: CPython 3.11 and 3.12 pass
over the handlers of a frame whose `try` begins with a tight loop.

`SIGURG`: what it does where nobody handles it is nothing, so one that comes after the last call kills no process; and few
programs use it. User code that blocks it or handles it cannot be interrupted, nor can a function that was not called from
the main thread: `impediment` says so, and it ends at its safe points, or by a limit.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import StackSummary
from types import FrameType
from typing import Final, TypeAlias

from .alarm import Alarm
from .own_code import OWN, own
from .shared_page import ACTIVE, ARMED, DEPTH, HARD, OVER, ROUND, SOFT, SPAN, STAMP, WANT, WANT_P, Page, Seen
from .thread_events import Drained, Ended, How, Injected, LeftAtomic, Order, Signalled
from .user_stack import stack

SIGNUM: Final = signal.SIGURG

Post: TypeAlias = Callable[[Ended | LeftAtomic | Signalled], None]
Handler: TypeAlias = Callable[[int, FrameType | None], object]


def _users(code: Callable[[], object]) -> object:
    """The frame between the wrapper's and the user's: the outermost in which a raise may land."""
    return code()


USERS: Final = _users.__code__
IMPORTS: Final = "<frozen importlib._bootstrap>"
"""The file of every frame of an import, also of one that a loader was asked for."""


class Gate:
    """One process's gate. M is the thread that makes it; `post` is called from M, also in a signal's handler."""

    def __init__(self, page: Page, post: Post, alarm: Alarm | None = None) -> None:
        self._page = page
        self._post = post
        self._alarm = alarm
        self._lock = threading.Lock()
        self._main = threading.get_ident()
        self._task = threading.get_native_id()
        self._due = 0
        self.theirs: dict[int, Handler] = {}
        """The program's own handlers of SIGINT and SIGTERM."""
        self.told = 0
        """The last of them that T was told of."""

    # --- M's side

    @own
    def run(self, order: Order) -> None:
        """Carry out a span of user code, and post how it ended."""
        ended = self._armed(order)
        self._rearm(0)
        self._post(ended)
        if due := self._due:
            self._due = 0
            self._tell(due)

    @own
    def _armed(self, order: Order) -> Ended:
        words = self._page.words
        words[DEPTH] = 0
        words[ROUND], words[SPAN], words[ACTIVE] = order.round, order.span, order.active
        words[SOFT], words[HARD] = order.soft, order.hard
        words[STAMP] = time.monotonic_ns()
        self._rearm(order.hard)
        try:
            words[ARMED] = order.token
            self._page.ring()
            value = _users(order.code)
        except BaseException as error:  # noqa: BLE001 - whatever it was, it is handed on
            words[OVER], words[ARMED] = order.token, 0
            return Ended(order.token, _how(error, order.token), None, error)
        words[OVER], words[ARMED] = order.token, 0
        return Ended(order.token, How.OK, value, None)

    @own
    def check(self) -> None:
        """A safe point: raises here if this span must end."""
        words = self._page.words
        if not words[DEPTH] and self._wanted(words):
            raise Injected(words[ARMED])
        if self._due and words[ARMED]:
            self._signal(self._due, sys._getframe(1))

    @own
    def ping(self) -> None:
        """The user's code gets on. A safe point."""
        self._page.words[STAMP] = time.monotonic_ns()
        self.check()

    @own
    def limits(self) -> tuple[int, int]:
        """The soft and the hard limit in force."""
        words = self._page.words
        return words[SOFT], words[HARD]

    @own
    def limit(self, soft: int, hard: int) -> None:
        """Put other limits in force, from now on. Not a safe point."""
        words = self._page.words
        words[STAMP] = time.monotonic_ns()
        words[SOFT], words[HARD] = soft, hard
        self._rearm(hard)
        self._page.ring()

    @own
    def _rearm(self, hard: int) -> None:
        if self._alarm is not None:
            self._alarm.set(hard)

    @own
    def enter(self) -> None:
        """Begin an atomic section, or raise if this span must end."""
        self._only_main()
        words = self._page.words
        with self._lock:
            depth = words[DEPTH]
            words[DEPTH] = depth + 1
            refused = not depth and self._wanted(words)
            if refused:
                words[DEPTH] = 0
        if refused:
            raise Injected(words[ARMED])

    @own
    def leave(self, may_raise: bool = True) -> None:
        """End an atomic section; raises if it was the outermost, this span must end and nothing graver is under way."""
        words = self._page.words
        with self._lock:
            depth = words[DEPTH] - 1
            words[DEPTH] = depth
            told = not depth and words[ARMED] and words[WANT] == words[ARMED]
        if told:
            self._post(LeftAtomic(words[ARMED]))
        if not depth and may_raise:
            self.check()

    @own
    def _wanted(self, words: memoryview[int]) -> bool:
        armed = words[ARMED]
        return bool(armed) and (words[WANT] == armed or words[WANT_P] == armed)

    @own
    def _only_main(self) -> None:
        if threading.get_ident() != self._main:
            raise RuntimeError("an atomic section belongs to the thread that called the wrapped function")

    # --- M's side: handlers of signals

    @own
    def injected(self, signum: int, frame: FrameType | None) -> None:
        """SIGURG: raise if all the conditions hold; else nothing."""
        words = self._page.words
        if self._wanted(words) and not words[DEPTH] and _is_users(frame) and not _imports(frame):
            raise Injected(words[ARMED])
        if self._due and words[ARMED] and _is_users(frame):
            self._signal(self._due, frame)

    @own
    def signalled(self, signum: int, frame: FrameType | None) -> None:
        """SIGINT and SIGTERM: what the program does with them, in its own code; told to T when M is in the wrapper."""
        if not self._page.words[ARMED]:
            self._tell(signum)
        elif _is_users(frame):
            self._signal(signum, frame)
        else:
            self._due = signum

    @own
    def _tell(self, signum: int) -> None:
        self.told = signum
        self._post(Signalled(signum))

    @own
    def _signal(self, signum: int, frame: FrameType | None) -> None:
        """A drain waits for the end of an atomic section, an interrupt does not."""
        theirs = self.theirs.get(signum)
        if theirs is None and self._page.words[DEPTH]:
            self._due = signum
            return
        self._due = 0
        if theirs is None:
            raise Drained
        theirs(signum, frame)

    # --- T's side

    def want(self, token: int) -> int:
        """This span must end. Returns how many atomic sections M is inside of: while that is not 0, wait for LeftAtomic."""
        with self._lock:
            self._page.words[WANT] = token
            return self._page.words[DEPTH]

    def inject(self) -> None:
        """Send M the signal. To be repeated until the span has ended."""
        signal.pthread_kill(self._main, SIGNUM)

    def seen(self) -> Seen:
        """The span under way and its progress."""
        return Seen.of(self._page.words)

    def stack(self) -> StackSummary:
        """Where the user's code stands, the outermost call first; nothing if M runs none."""
        return stack(self._main, USERS)

    def impediment(self) -> str | None:
        """Why the signal cannot reach the user's code, if so; for the log. Any thread may ask, at any time."""
        if self._main != threading.main_thread().ident:
            return "the function was not called from the main thread, where alone Python handles signals"
        if signal.getsignal(SIGNUM) != self.injected:
            return f"the program has put a handler of its own on {SIGNUM.name}"
        if SIGNUM in _blocked(self._task):
            return f"the program has blocked {SIGNUM.name} in its main thread"
        return None


def _how(error: BaseException, token: int) -> How:
    """An Injected of an older span, kept and raised again by the user's code, is a failure like others."""
    match error:
        case Injected():
            return How.INJECTED if error.token == token else How.EXCEPTION
        case KeyboardInterrupt():
            return How.INTERRUPT
        case Exception():
            return How.EXCEPTION
        case _:
            return How.BASE


@own
def _is_users(frame: FrameType | None) -> bool:
    """Whether the user's code is what M runs: on the way out, its frame comes before any of the wrapper's.

    Not only the innermost frame is looked at: the wrapper may have been interrupted in a tracing function, a destructor.
    """
    return all(id(each.f_code) not in OWN for each in _above_users(frame))


@own
def _imports(frame: FrameType | None) -> bool:
    """Whether the user's code is in an import. (The user's code may itself be called by one.)"""
    return any(each.f_code.co_filename == IMPORTS for each in _above_users(frame))


@own
def _above_users(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames on the way out, down to the one below the user's code."""
    while frame is not None and frame.f_code is not USERS:
        yield frame
        frame = frame.f_back


def _blocked(task: int) -> set[signal.Signals]:
    for line in Path(f"/proc/self/task/{task}/status").read_text().splitlines():
        if line.startswith("SigBlk:"):
            mask = int(line.split()[1], 16)
            return {signum for signum in signal.Signals if mask >> (signum - 1) & 1}
    return set()
