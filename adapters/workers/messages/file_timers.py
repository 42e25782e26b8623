"""torch's file timers: a worker writes a deadline to a named pipe, and is killed if it does not take it back in time.

A worker finds the pipe's name in TORCHELASTIC_TIMER_FILE, and `torch.distributed.elastic.timer.FileTimerClient` writes a
line of JSON to it: {"version", "pid", "scope_id", "expiration_time", "signal"}; a negative time takes the timer back, a
signal of 0 kills nothing. Unlike torch's agent, which then kills itself too, this one kills the process alone: what becomes
of the job is the group's to decide, as after any death. Only a process of a worker's session can be killed this way.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import define, field

from ....core.values import frozen
from ... import pidfds, threads
from ...clock import poll_ms
from .error_files import leave_error_file, signal_name

_REST_MAX = 65_536
"""This many bytes of a line that does not end are kept; a client's lines are shorter than PIPE_BUF."""
TIMERS_MAX = 65_536
"""Further timers are passed over: anybody who finds the pipe can write there."""
_PID_MAX = 1 << 22
"""The kernel's limit."""
_JOIN_TIMEOUT_S = 5.0
_EARLY_S = 60.0
"""An agent may take this long from a worker's start to following it; later another process may have its number."""


@frozen
class Request:
    """A line of the pipe. `expiration_time` is in Unix seconds of this host, as the client's."""

    pid: int
    scope_id: str
    expiration_time: float
    signal: int

    @property
    def as_torch_has_it(self) -> dict[str, str]:
        """The fields of torch's event."""
        return {
            "worker_pid": str(self.pid),
            "scope_id": self.scope_id,
            "expiration_time": str(self.expiration_time),
            "signal": str(self.signal),
        }

    @property
    def key(self) -> tuple[int, str]:
        return self.pid, self.scope_id


@frozen
class Timer:
    """A timer that runs. `ends_at` is on our own clock, so that a step of the host's does not end it."""

    request: Request
    span_s: float
    ends_at: float


@define(eq=False)
class FileTimers:
    """Reads the pipe, and kills, in its own thread. Raises OSError if the pipe cannot be made."""

    path: Path
    failed: Callable[[BaseException], object]
    """Called with an error that ends the thread."""
    tell: Callable[[str, Mapping[str, str]], None] = lambda name, timer: None
    """Called from this thread with torch's name of what was done, and torch's fields of the timer."""
    callstack: Callable[[int], str] = lambda pid: ""
    """Returns the stack of a process that is to be killed next, as a traceback has it; nothing if it cannot be had."""
    _errors: Mapping[int, Path | None] = field(factory=dict, init=False)
    _timers: dict[tuple[int, str], Timer] = field(factory=dict, init=False)
    _early: dict[tuple[int, str], Timer] = field(factory=dict, init=False)
    """Timers that expired before their process was followed: a worker runs before the agent can follow it."""
    _rest: bytes = field(default=b"", init=False)
    _pipe: int = field(init=False)
    _followed: int = field(init=False)
    _stop: int = field(init=False)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._pipe = _made(self.path)
        self._followed = os.eventfd(0, os.EFD_CLOEXEC)
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        run = threads.guarded(self._run, self.failed)
        self._thread = threading.Thread(target=run, name="elastic-timers", daemon=True)
        threads.start(self._thread)

    def follow(self, errors: Mapping[int, Path | None]) -> None:
        """Follow these workers, by process id, with their error files; timers of others end."""
        self._errors = errors
        os.eventfd_write(self._followed, 1)

    def close(self) -> None:
        """End the thread, and take the pipe away. Idempotent."""
        if self._stop == -1:
            return
        os.eventfd_write(self._stop, 1)
        self._thread.join(_JOIN_TIMEOUT_S)
        for descriptor in (self._pipe, self._followed, self._stop):
            os.close(descriptor)
        self._stop = -1
        self.path.unlink(missing_ok=True)

    def _run(self) -> None:
        poll = select.poll()
        for descriptor in (self._pipe, self._followed, self._stop):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(self._timeout_ms())}
            if self._stop in ready:
                return
            if self._followed in ready:
                self._claim()
            if self._pipe in ready:
                self._read()
            self._expire()

    def _timeout_ms(self) -> float | None:
        ends_at = min((timer.ends_at for timer in self._timers.values()), default=None)
        return None if ends_at is None else poll_ms(ends_at - time.monotonic()) + 1

    def _read(self) -> None:
        *lines, rest = (self._rest + os.read(self._pipe, _REST_MAX)).split(b"\n")
        self._rest = rest if len(rest) < _REST_MAX else b""
        for line in lines:
            if request := parse(line):
                self._take(request)

    def _take(self, request: Request) -> None:
        self._early.pop(request.key, None)
        if request.expiration_time < 0:
            self._timers.pop(request.key, None)
        elif request.key in self._timers or len(self._timers) + len(self._early) < TIMERS_MAX:
            span = request.expiration_time - time.time()
            self._timers[request.key] = Timer(request, span, time.monotonic() + span)

    def _expire(self) -> None:
        now = time.monotonic()
        for key, timer in sorted(self._timers.items(), key=lambda item: item[1].ends_at):
            if timer.ends_at <= now:
                del self._timers[key]
                self._kill(timer)

    def _claim(self) -> None:
        """Look at the early timers once more. Those of processes that are not followed now end, and so do those that run."""
        os.eventfd_read(self._followed)
        late = time.monotonic() - _EARLY_S
        for timer in tuple(self._early.values()):
            if timer.ends_at > late:
                self._kill(timer)
        self._early.clear()
        self._timers = {key: timer for key, timer in self._timers.items() if self._follows(key[0])}

    def _follows(self, pid: int) -> bool:
        try:
            return os.getsid(pid) in self._errors
        except OSError:
            return False  # it has ended

    def _kill(self, timer: Timer) -> None:
        request = timer.request
        try:
            pidfd = pidfds.opened(request.pid)
        except OSError:
            return  # it has ended
        try:
            leader = os.getsid(request.pid)
            if leader not in self._errors:
                self._early[request.key] = timer
            elif 0 < request.signal < signal.NSIG:
                leave_error_file(self._errors[leader], expired(timer), self.callstack(request.pid))
                self.tell("timer expired", request.as_torch_has_it)
                pidfds.send(pidfd, request.signal)
                self.tell("kill worker process", request.as_torch_has_it)
        except OSError:
            pass  # it has just ended
        finally:
            os.close(pidfd)


def expired(timer: Timer) -> str:
    """Return what happened, for the failure's report."""
    request = timer.request
    name = signal_name(request.signal)
    return f"timer {request.scope_id!r} expired after {timer.span_s:.1f} s: pid {request.pid} was sent {name}"


def parse(line: bytes) -> Request | None:
    """Return the request; None for any other text: anybody who finds the pipe can write there."""
    try:
        found = json.loads(line)
        pid, expiration_time = int(found["pid"]), float(found["expiration_time"])
        if not 0 < pid <= _PID_MAX or math.isnan(expiration_time):
            return None
        return Request(pid, str(found["scope_id"]), expiration_time, int(found["signal"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _made(path: Path) -> int:
    """Make the pipe. One that a killed agent left behind is replaced; any other file is left alone. Raises OSError."""
    if path.exists() and stat.S_ISFIFO(path.stat().st_mode):
        path.unlink()
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
