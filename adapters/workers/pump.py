"""One thread that carries the output of tee'd workers: every byte to its file as it comes, whole lines to the console.

The file gets the bytes unchanged and at once, for it must be complete when the agent is killed. The console gets lines,
each behind its worker's prefix, so that workers do not cut into each other; a carriage return ends a line too, as in
torchrun, so that a progress bar is seen to move. A line that does not end is passed on in pieces of LINE_MAX. A console
or a file that fails is given up, never the other one, and never the worker: its pipe is read on.

A console that does not read is not waited for. What it has not taken is kept, up to PENDING_MAX; beyond that the pipes of
those who write to it are left alone until it reads again, so that memory is bounded, nothing is lost, and a worker waits as
it would without a tee. Other consoles' workers, and the agent, do not wait.

The agent's thread calls `follow` when it starts a worker and `finish` when it has collected it: then what the pipe
holds is read out without waiting for its end, which a grandchild may hold off for ever, and the stream is closed.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from attrs import define, field

from .. import threads
from .console import Console, identity
from .prefixed_lines import LINE_MAX, cut, last, matching
from .worker_port import Duplicate

_READ_MAX = LINE_MAX
"""A read is no longer than a line may be, so only the first line of what was read can be too long."""
PENDING_MAX = 1 << 20
"""So many bytes are kept for a console that does not read."""
_JOIN_TIMEOUT_S = 5.0


@define(eq=False)
class _Console:
    to: Console
    streams: set[Stream] = field(factory=set)
    polled: bool = False
    paused: bool = False


@define(eq=False)
class Stream:
    """One tee'd stream of one worker. Only the pump's thread changes it."""

    source: int
    path: Path
    file: int | None
    console: int
    prefix: bytes
    needles: tuple[bytes, ...] = ()
    duplicate: int | None = None
    rest: bytes = b""
    watched: bool = True
    closed: bool = False


class LogPump:
    """Starts its thread with the first stream at the latest. `failed` is called with an error that ends the thread."""

    def __init__(self, failed: Callable[[BaseException], object] = threads.shown) -> None:
        self._changed = threading.Condition()
        self._streams: dict[int, Stream] = {}
        self._finishing: dict[Stream, None] = {}
        self._closing = self._closed = False
        self._closes_at = 0.0
        self._consoles: dict[tuple[int, int], _Console] = {}
        self._polled: dict[int, _Console] = {}
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        run = threads.guarded(self._run, failed)
        self._thread = threading.Thread(target=run, name="elastic-log-pump", daemon=True)

    def follow(self, source: int, path: Path, console: int, prefix: str, duplicate: Duplicate | None = None) -> Stream:
        """Carry what comes out of the pipe `source` (ours to close) until it ends or `finish`."""
        with ExitStack() as undo:
            undo.callback(os.close, source)
            file = _appended(path, undo)
            stream = Stream(source, path, file, console, os.fsencode(prefix))
            if duplicate:
                stream.needles, stream.duplicate = duplicate.needles, _appended(duplicate.path, undo)
            undo.pop_all()
        os.set_blocking(source, False)
        self._streams[source] = stream
        self._epoll.register(source, select.EPOLLIN)
        self.start()
        return stream

    def start(self) -> None:
        """Start the thread. Best done before the machine is busy with new processes: it waits for the thread. Idempotent."""
        if self._thread.ident is None:
            threads.start(self._thread, 0.0)

    def finish(self, stream: Stream) -> None:
        """The worker is dead and collected: carry what its pipe holds, then close it. Does not wait."""
        with self._changed:
            if stream.closed:
                return
            self._finishing[stream] = None
        os.eventfd_write(self._wake, 1)

    def drain(self, timeout_s: float) -> bool:
        """Wait until all finished streams are in their files, and closed."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._finishing, timeout_s)

    def close(self, timeout_s: float = _JOIN_TIMEOUT_S) -> None:
        """Carry what there is, stop the thread; a console that does not read is waited for so long. Idempotent."""
        if self._closed:
            return
        self._closing, self._closes_at = True, time.monotonic() + timeout_s
        os.eventfd_write(self._wake, 1)
        if self._thread.ident is not None:
            self._thread.join(timeout_s + _JOIN_TIMEOUT_S)
        if not self._thread.is_alive():
            self._closed = True
            self._epoll.close()
            os.close(self._wake)
            for console in self._consoles.values():
                console.to.close()

    def _run(self) -> None:
        while not self._closing:
            self._step(None)
        for stream in list(self._streams.values()):
            self._carry_rest(stream)
        while self._polled and (left := self._closes_at - time.monotonic()) > 0:
            self._step(left)

    def _step(self, timeout_s: float | None) -> None:
        for ready, _ in self._epoll.poll(timeout_s):
            if ready == self._wake:
                os.eventfd_read(self._wake)
                self._finish_asked()
            elif stream := self._streams.get(ready):
                self._carry_once(stream)
            elif console := self._polled.get(ready):
                console.to.flush()
                self._settle(console)

    def _finish_asked(self) -> None:
        with self._changed:
            asked = list(self._finishing)
        for stream in asked:
            self._carry_rest(stream)

    def _carry_once(self, stream: Stream) -> int:
        """Bytes carried; 0 if the pipe is empty for now, or at its end, and then the stream is closed."""
        try:
            chunk = os.read(stream.source, _READ_MAX)
        except BlockingIOError:
            return 0
        if chunk:
            self._to_file(stream, chunk)
            data = stream.rest + chunk
            text, stream.rest = cut(data, stream.prefix)
            self._to_console(stream, text)
            self._duplicate(stream, data[: len(data) - len(stream.rest)])
        else:
            self._end(stream)
        return len(chunk)

    def _carry_rest(self, stream: Stream) -> None:
        """Carry what the pipe holds now, but not what a living writer goes on to write: at most as much as fits into it."""
        left = 0 if stream.closed else fcntl.fcntl(stream.source, fcntl.F_GETPIPE_SZ)
        while left > 0 and (carried := self._carry_once(stream)):
            left -= carried
        self._end(stream)

    def _end(self, stream: Stream) -> None:
        if not stream.closed:
            self._to_console(stream, last(stream.rest, stream.prefix))
            self._duplicate(stream, stream.rest)
            self._forget(stream)
        with self._changed:
            stream.closed = True
            self._finishing.pop(stream, None)
            self._changed.notify_all()

    def _forget(self, stream: Stream) -> None:
        del self._streams[stream.source]
        self._watch(stream, False)
        for console in self._consoles.values():
            console.streams.discard(stream)
        for descriptor in (stream.source, stream.file, stream.duplicate):
            if descriptor is not None:
                os.close(descriptor)

    def _to_file(self, stream: Stream, data: bytes) -> None:
        if stream.file is None:
            return
        try:
            _write(stream.file, data)
        except OSError as error:
            os.close(stream.file)
            stream.file = None
            note = f"{stream.path}: {error.strerror}: from here on this output is on the console only\n"
            self._to_console(stream, stream.prefix + os.fsencode(note))

    def _duplicate(self, stream: Stream, data: bytes) -> None:
        if stream.duplicate is None:
            return
        try:
            _write(stream.duplicate, matching(data, stream.needles, stream.prefix))
        except OSError:
            os.close(stream.duplicate)
            stream.duplicate = None

    # --- consoles

    def _console(self, stream: Stream) -> _Console:
        """Return one console for all descriptors of the same place: two would write into each other's lines."""
        place = identity(stream.console)
        if place not in self._consoles:
            self._consoles[place] = _Console(Console(stream.console))
        console = self._consoles[place]
        console.streams.add(stream)
        return console

    def _to_console(self, stream: Stream, text: bytes) -> None:
        if text:
            console = self._console(stream)
            console.to.put(text)
            self._settle(console)

    def _settle(self, console: _Console) -> None:
        """Wait for it while it has not taken all, and for its streams unless it has too much to take."""
        pending = console.to.pending
        if bool(pending) != console.polled:
            console.polled = bool(pending)
            if console.polled:
                self._polled[console.to.number] = console
                self._epoll.register(console.to.number, select.EPOLLOUT)
            else:
                del self._polled[console.to.number]
                self._epoll.unregister(console.to.number)
        paused = pending > PENDING_MAX
        if paused or console.paused:
            console.paused = paused
            for stream in console.streams:
                self._watch(stream, not paused)

    def _watch(self, stream: Stream, watched: bool) -> None:
        if watched != stream.watched:
            stream.watched = watched
            if watched:
                self._epoll.register(stream.source, select.EPOLLIN)
            else:
                self._epoll.unregister(stream.source)


def _appended(path: Path, undo: ExitStack) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    undo.callback(os.close, descriptor)
    return descriptor


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
