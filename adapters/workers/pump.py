"""One thread that carries the output of tee'd workers: every byte to its file as it comes, whole lines to the console.

The file gets the bytes unchanged and at once, for it must be complete when the agent is killed. The console gets lines,
each behind its worker's prefix, so that workers do not cut into each other; a carriage return ends a line too, as in
torchrun, so that a progress bar is seen to move. A line that does not end is passed on in pieces of LINE_MAX. A console
or a file that fails is given up, never the other one, and never the worker: its pipe is read on.

The agent's thread calls `follow` when it starts a worker and `finish` when it has collected it: then what the pipe
holds is read out without waiting for its end, which a grandchild may hold off for ever, and the stream is closed. A
console that blocks blocks this thread and in the end the workers, as it would without a tee, but not the agent: `drain`
is bounded.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading
from pathlib import Path

from attrs import define

READ_MAX = 65_536
LINE_MAX = 65_536
"""Longest piece of a line on the console, in bytes."""
JOIN_TIMEOUT_S = 5.0


@define(eq=False)
class Stream:
    """One tee'd stream of one worker. Only the pump's thread changes it."""

    source: int
    path: Path
    file: int | None
    console: int
    prefix: bytes
    rest: bytes = b""
    closed: bool = False


class LogPump:
    """Starts its thread with the first stream at the latest."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._streams: dict[int, Stream] = {}
        self._finishing: dict[Stream, None] = {}
        self._closing = self._closed = False
        self._failed_consoles: set[int] = set()
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="elastic-log-pump", daemon=True)

    def follow(self, source: int, path: Path, console: int, prefix: str) -> Stream:
        """Carry what comes out of the pipe `source` (ours to close) until it ends or `finish`."""
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError:
            os.close(source)
            raise
        os.set_blocking(source, False)
        stream = self._streams[source] = Stream(source, path, file, console, os.fsencode(prefix))
        self._epoll.register(source, select.EPOLLIN)
        self.start()
        return stream

    def start(self) -> None:
        """Idempotent. Best done before the machine is busy with new processes: it waits until the thread runs."""
        if self._thread.ident is None:
            self._thread.start()

    def finish(self, stream: Stream) -> None:
        """The worker is dead and collected: carry what its pipe holds, then close it. Does not wait."""
        with self._changed:
            if stream.closed:
                return
            self._finishing[stream] = None
        os.eventfd_write(self._wake, 1)

    def drain(self, timeout_s: float) -> bool:
        """Wait until all finished streams are carried and closed."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._finishing, timeout_s)

    def close(self, timeout_s: float = JOIN_TIMEOUT_S) -> None:
        """Carry what there is, stop the thread. Idempotent. A console that blocks keeps thread and descriptors."""
        if self._closed:
            return
        self._closing = True
        os.eventfd_write(self._wake, 1)
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._closed = True
            self._epoll.close()
            os.close(self._wake)

    def _run(self) -> None:
        while not self._closing:
            for ready, _ in self._epoll.poll():
                if ready == self._wake:
                    os.eventfd_read(self._wake)
                    self._finish_asked()
                elif stream := self._streams.get(ready):
                    self._carry_once(stream)
        for stream in list(self._streams.values()):
            self._carry_rest(stream)

    def _finish_asked(self) -> None:
        with self._changed:
            asked = list(self._finishing)
        for stream in asked:
            self._carry_rest(stream)

    def _carry_once(self, stream: Stream) -> int:
        """Bytes carried; 0 if the pipe is empty for now, or at its end, and then the stream is closed."""
        try:
            chunk = os.read(stream.source, READ_MAX)
        except BlockingIOError:
            return 0
        if chunk:
            self._to_file(stream, chunk)
            text, stream.rest = cut(stream.rest + chunk, stream.prefix)
            self._to_console(stream, text)
        else:
            self._end(stream)
        return len(chunk)

    def _carry_rest(self, stream: Stream) -> None:
        """What the pipe holds now, and not what a living writer goes on to write: at most as much as fits into it."""
        left = 0 if stream.closed else fcntl.fcntl(stream.source, fcntl.F_GETPIPE_SZ)
        while left > 0 and (carried := self._carry_once(stream)):
            left -= carried
        self._end(stream)

    def _end(self, stream: Stream) -> None:
        if not stream.closed:
            self._to_console(stream, last(stream.rest, stream.prefix))
            del self._streams[stream.source]
            self._epoll.unregister(stream.source)
            os.close(stream.source)
            if stream.file is not None:
                os.close(stream.file)
        with self._changed:
            stream.closed = True
            self._finishing.pop(stream, None)
            self._changed.notify_all()

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

    def _to_console(self, stream: Stream, text: bytes) -> None:
        if not text or stream.console in self._failed_consoles:
            return
        try:
            _write(stream.console, text)
        except OSError:
            self._failed_consoles.add(stream.console)


def cut(data: bytes, prefix: bytes) -> tuple[bytes, bytes]:
    """Whole lines of `data`, each behind the prefix, and the rest, shorter than LINE_MAX.

    A carriage return at the very end is left in the rest: a newline may follow that belongs to it.
    """
    lines = data.splitlines(keepends=True)
    rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
    text = b"".join(_line(line, prefix) for line in lines)
    whole = len(rest) - len(rest) % LINE_MAX
    return text + _pieces(rest[:whole], prefix), rest[whole:]


def last(rest: bytes, prefix: bytes) -> bytes:
    """The rest at the end of a stream, as a line."""
    return _line(rest, prefix) if rest else b""


def _line(line: bytes, prefix: bytes) -> bytes:
    text = line.rstrip(b"\r\n")
    if line == b"\r":
        return b""  # the start of a progress bar, not an empty line
    return _pieces(text, prefix) if text else prefix + b"\n"


def _pieces(text: bytes, prefix: bytes) -> bytes:
    starts = range(0, len(text), LINE_MAX)
    return b"".join(b"%b%b\n" % (prefix, text[start : start + LINE_MAX]) for start in starts)


def _write(descriptor: int, data: bytes) -> None:
    """All of it, also to one that was made non-blocking by whoever shares it."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            ready = select.poll()
            ready.register(descriptor, select.POLLOUT)
            ready.poll()
