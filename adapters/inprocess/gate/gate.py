"""The gate: it lets the driver and the monitor end a span of user code on the main thread, and only user code.

The main thread arms the gate with the span's token, calls the user's code, and disarms the gate. The driver writes the token
of the span that must end and sends the main thread a signal; the monitor process does the same from outside. The signal's
handler runs on the main thread, between two bytecodes. It raises `Injected` there if, at that moment,

    armed and (want = armed or want_monitor = armed)   this very span must end: a token is never used twice, so a late
                                                       signal or an old request hits nothing
    depth = 0                                          the main thread is in no atomic section
    the frame is the user's                            the main thread is not in the wrapper, which user code may call, nor
                                                       in a destructor
    no import is under way                             a module that is left half-way stays broken for the process's life
    nothing of this span is being cleaned up           what was raised before is being handled, by `finally`, `with` or
                                                       `except`, also of a generator that is closed, and has time for
                                                       that (`Order.clean`)

Between this look and the raise the main thread does nothing else, so nothing is raised after it has disarmed the gate. A
signal may come too early, may be merged with another, or may be swallowed: then it is sent again. Only disarming clears
anything. User code also meets the request at its safe points: `check`, `ping`, the ends of sections. A limit ends an import
that hangs, together with the process.

The driver writes its request and then reads the depth. The main thread writes the depth and then reads the request. Both do
so under one lock: the driver sees that the main thread is in an atomic section, or the main thread sees that it may not
enter one. So nothing is torn down under an atomic section. A signal's handler that interrupts the lock's holder may enter a
section itself: it takes the lock again, and leaves the depth as it was.

The exception is raised into a frame of its own, `call_users`, and the frame that called it catches it: CPython 3.11 and 3.12
skip the handlers of a frame whose `try` begins with a tight loop.

The signal is `SIGURG`. Its default action is nothing, so one that comes after the last call kills no process, and few
programs use it. User code that blocks or handles it cannot be interrupted, nor can a function that was not called from the
main thread. `impediment` says so; such code ends at its safe points, or by a limit.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from traceback import StackSummary
from types import FrameType
from typing import Final, TypeAlias

from ....core.inprocess.words import GUARDED, How
from ..shared_page import (
    ACTIVE,
    ARMED,
    COUNTS,
    DEPTH,
    HARD,
    HUNG,
    LAPSED,
    OVER,
    ROUND,
    SOFT,
    STAMP,
    WANT,
    WANT_MONITOR,
    Page,
)
from ..thread_events import (
    Drained,
    Finished,
    FromGate,
    Injected,
    LeftAtomic,
    Order,
    PutOff,
    Signalled,
    SpanEnd,
)
from ..user_stack import call_users, is_importing, is_users, own, related, stack
from .alarm import Alarm

SIGNUM: Final = signal.SIGURG

Post: TypeAlias = Callable[[FromGate], None]
Handler: TypeAlias = Callable[[int, FrameType | None], object]


class Gate:
    """The gate of one process, made by its main thread. `post` is called from there, also in a signal's handler."""

    def __init__(self, page: Page, post: Post, alarm: Alarm | None = None) -> None:
        self._page = page
        self._post = post
        self._alarm = alarm
        self._lock = threading.RLock()
        self._main = threading.get_ident()
        self._task = threading.get_native_id()
        self._due = 0
        self.theirs: dict[int, Handler] = {}
        """The program's own handlers of SIGINT and SIGTERM."""
        self.told = 0
        """The last of them that the driver was told of. One that the monitor sent is not for the program."""
        self.hung = (0, 0)
        """The span in which the handler raised last and its soft limit, if that limit had passed; else zeros."""
        self.got_on = 0
        """The last span whose code has called `ping`, or begun a section."""
        self._clean = 0
        self._clean_until = (0, 0)
        """The span in which something was raised last, and until when user code may handle that undisturbed."""

    # --- the main thread's side

    @own
    def run(self, order: Order) -> Finished | None:
        """Run a span of user code, and post how it ended. The call is its process's alone: in a child that the code forked,
        return what the code returned there, or raise what it raised."""
        words = self._page.words
        ended = self._armed(order)
        if self._page.words is not words:
            if ended.error is not None:
                raise ended.error
            return Finished(ended.value, None)
        self._rearm(0)
        self._post(ended)
        if due := self._due:
            self._due = 0
            self._tell(due)
        return None

    @own
    def _armed(self, order: Order) -> SpanEnd:
        words = self._page.words
        words[DEPTH] = 0
        words[ROUND], words[COUNTS], words[ACTIVE] = order.round, order.span in GUARDED, order.active
        words[SOFT], words[HARD] = order.soft, order.hard
        words[STAMP] = time.monotonic_ns()
        self._clean = order.clean
        self._rearm(order.hard)
        try:
            words[ARMED] = order.token
            self._page.ring()
            value = call_users(order.code)
        except BaseException as error:  # noqa: BLE001 - whatever it was, it is handed on
            self._disarm(order.token)
            return SpanEnd(order.token, _how(error, order.token), None, error)
        self._disarm(order.token)
        return SpanEnd(order.token, How.RETURNED, value, None)

    @own
    def _disarm(self, token: int) -> None:
        words = self._page.words  # in a forked child its own
        words[OVER], words[ARMED] = token, 0

    @own
    def check(self) -> None:
        """Raise here if this span must end: a safe point. Do nothing in another thread, which nobody ends."""
        words = self._page.words
        wanted = not words[DEPTH] and self._wanted(words)
        if not (wanted or self._due) or threading.get_ident() != self._main:
            return
        if wanted and not self._cleans_up(words):
            raise self._injection(words)
        if self._due and words[ARMED]:
            self._signal(self._due, sys._getframe(1))

    @own
    def ping(self) -> None:
        """Note progress of the user's code. A safe point."""
        self._page.words[STAMP] = time.monotonic_ns()
        self.got_on = self._page.words[ARMED]
        self.check()

    @own
    def limits(self) -> tuple[int, int]:
        """Return the soft and the hard limit in force, in nanoseconds."""
        words = self._page.words
        return words[SOFT], words[HARD]

    @own
    def limit(self, soft: int, hard: int) -> None:
        """Put other limits (nanoseconds) in force, from now on. Not a safe point."""
        words = self._page.words
        words[STAMP] = time.monotonic_ns()
        words[SOFT], words[HARD] = soft, hard
        self.got_on = words[ARMED]
        self._rearm(hard)
        self._page.ring()

    @own
    def _rearm(self, hard: int) -> None:
        if self._alarm is not None:
            self._alarm.set(hard)

    @own
    def enter(self) -> None:
        """Begin an atomic section, or raise if this span must end."""
        self.only_main("an atomic section")
        words = self._page.words
        self.got_on = words[ARMED]
        with self._lock:
            depth = words[DEPTH]
            words[DEPTH] = depth + 1
            refused = not depth and self._wanted(words)
            if refused:
                words[DEPTH] = 0
        if refused:
            raise self._injection(words)

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
        return bool(armed) and (words[WANT] == armed or words[WANT_MONITOR] == armed)

    @own
    def _injection(self, words: memoryview[int]) -> Injected:
        """Return what is raised into this span now."""
        self._clean_until = words[ARMED], time.monotonic_ns() + self._clean
        return Injected(words[ARMED])

    @own
    def _cleans_up(self, words: memoryview[int]) -> bool:
        """Return True while the code that was interrupted handles what was raised in this span, and has time for that."""
        token, until = self._clean_until
        if token != words[ARMED] or time.monotonic_ns() >= until:
            return False
        return any(_asks_to_clean_up(each, token) for each in related(sys.exc_info()[1]))

    @own
    def only_main(self, what: str) -> None:
        """Refuse this in another thread."""
        if threading.get_ident() != self._main:
            raise RuntimeError(f"{what} belongs to the thread that called the wrapped function")

    # --- the main thread's side: handlers of signals

    @own
    def injected(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGURG: raise if all conditions hold."""
        words = self._page.words
        wanted = self._wanted(words) and not words[DEPTH] and is_users(frame) and not is_importing(frame)
        if wanted and not self._cleans_up(words):
            armed, soft = words[ARMED], words[SOFT]
            hung = soft and (words[LAPSED] == armed or time.monotonic_ns() >= words[STAMP] + soft)
            self.hung = (armed, soft) if hung else (0, 0)
            raise self._injection(words)
        if self._due and words[ARMED] and is_users(frame):
            self._signal(self._due, frame)

    @own
    def signalled(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGINT and SIGTERM as the program does, in user code; in the wrapper's code tell the driver."""
        if not self._page.words[ARMED]:
            self._tell(signum)
        elif is_users(frame):
            self._signal(signum, frame)
        else:
            self._due = signum
            self._post(PutOff())

    @own
    def _tell(self, signum: int) -> None:
        if not (signum == signal.SIGTERM and self._page.words[HUNG]):
            self.told = signum
        self._post(Signalled(signum))

    @own
    def _signal(self, signum: int, frame: FrameType | None) -> None:
        """Call the program's handler, or raise Drained. A drain waits for the end of an atomic section, an interrupt does
        not."""
        theirs = self.theirs.get(signum)
        if theirs is None and self._page.words[DEPTH]:
            self._due = signum
            return
        self._due = 0
        if theirs is None:
            raise Drained
        theirs(signum, frame)

    # --- the driver's side

    def want(self, token: int) -> int:
        """Ask for the end of this span. Return how many atomic sections the main thread is in; unless 0, wait for
        LeftAtomic."""
        with self._lock:
            self._page.words[WANT] = token
            return self._page.words[DEPTH]

    def inject(self) -> None:
        """Send the main thread the signal. Repeat it until the span has ended."""
        signal.pthread_kill(self._main, SIGNUM)

    def puts_off(self) -> bool:
        """Return True while SIGINT or SIGTERM waits for user code to go on: `inject` hands it on. An atomic section hands it
        on at its end."""
        return bool(self._due) and not self._page.words[DEPTH]

    def stack(self, whole: bool = False) -> StackSummary:
        """Return the user's stack, or the main thread's whole stack, as `user_stack.stack` does."""
        return stack(self._main, whole)

    def impediment(self) -> str | None:
        """Return why the signal cannot reach user code, for the log; None if it can. Any thread may ask, at any time."""
        if self._main != threading.main_thread().ident:
            return "the function was not called from the main thread, where alone Python handles signals"
        if signal.getsignal(SIGNUM) != self.injected:
            return f"the program has put a handler of its own on {SIGNUM.name}"
        if SIGNUM in _blocked(self._task):
            return f"the program has blocked {SIGNUM.name} in its main thread"
        return None


GRAVEST: Final = (How.INTERRUPTED, How.EXITED, How.INJECTED, How.FAILED)
"""The members of a group of exceptions that decide, in their order: tasks of asyncio raise groups."""


def _how(error: BaseException, token: int) -> How:
    """Return how the span ended. An Injected of an older span that user code kept and raised again is a failure."""
    match error:
        case BaseExceptionGroup():
            return min((_how(each, token) for each in error.exceptions), key=GRAVEST.index)
        case Injected():
            return How.INJECTED if error.token == token else How.FAILED
        case KeyboardInterrupt():
            return How.INTERRUPTED
        case Exception():
            return How.FAILED
        case _:
            return How.EXITED


def _asks_to_clean_up(error: BaseException, token: int) -> bool:
    """Return True for what was raised in this span, and for what is raised in a generator that its loop has let go of."""
    return isinstance(error, GeneratorExit) or (isinstance(error, Injected) and error.token == token)


def _blocked(task: int) -> set[signal.Signals]:
    for line in Path(f"/proc/self/task/{task}/status").read_text(errors="replace").splitlines():
        if line.startswith("SigBlk:"):
            mask = int(line.split()[1], 16)
            return {signum for signum in signal.Signals if mask >> (signum - 1) & 1}
    return set()
