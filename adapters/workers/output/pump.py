"""One thread that carries the output of tee'd workers: every byte towards its file as it comes, whole lines to the console.

Another thread writes the files (log_file.py), for a disk may stand still. A file gets the bytes unchanged, within some
milliseconds if its disk takes them: an agent that is killed loses only these. The console gets lines, each behind its
worker's prefix, so that workers do not cut into each other; a carriage return ends a line too, as in torchrun, so that a
progress bar is seen to move. A line that does not end is passed on in pieces of LINE_MAX, and its beginning after PROMPT_S:
it may be a prompt. Its end follows in the same line, unless another worker wrote meanwhile: then the rest follows in a line
of its own. A console or a file that fails is given up, never the other one, and never the worker: its pipe is read on.

A console that does not read, or a disk that stands still, is not waited for either. What it has not taken is kept, up to
PENDING_MAX or WAITING_MAX; beyond that the pipes of its workers are not read until it takes more, so that memory is bounded,
nothing is lost, and a worker waits as it would without a tee. Other workers, and the agent, do not wait.

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
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from ....core.values import define, field
from ... import threads
from ...disk import Disk
from ...terminal import why
from ..worker_port import NOWHERE, Duplicate, Kept
from .console import UNFINISHED, Console, identity
from .log_file import LogFile, LogWriter
from .prefixed_lines import LINE_MAX, cut, last, matching, showable

_READ_MAX = LINE_MAX
"""A read is no longer than a line may be, so only the first line of what was read can be too long."""
PENDING_MAX = 1 << 20
"""How many bytes are kept for a console that does not read."""
_JOIN_TIMEOUT_S = 5.0
KEPT_MAX = 16_384
"""How many of a stream's last bytes are kept in memory: a report needs them if the file does not have them."""
_APPENDS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
PROMPT_S = 0.2
"""How long a line without an end waits until its beginning is shown."""


@define(eq=False)
class _Console:
    to: Console
    place: tuple[int, int]
    streams: set[Stream] = field(factory=set)
    polled: bool = False
    paused: bool = False

    @property
    def open(self) -> object:
        """The stream whose unfinished line is the last one on it."""
        return UNFINISHED.get(self.place)

    def leave(self, stream: Stream | None) -> None:
        """Say that the last line there is this stream's, and not finished; None: it is finished."""
        if stream is None:
            UNFINISHED.pop(self.place, None)
        else:
            UNFINISHED[self.place] = stream


@define(eq=False)
class Stream:
    """One tee'd stream of one worker. Only the pump's thread changes it."""

    source: int
    file: LogFile | None
    console: int
    prefix: bytes
    needles: tuple[bytes, ...] = ()
    duplicate: LogFile | None = None
    rest: bytes = b""
    shown: int = 0
    """How many bytes of `rest` are on the console."""
    watched: bool = True
    is_file_lost: bool = False
    """Its file has failed, and that was said."""
    ending: bool = False
    closed: bool = False
    last: bytes = b""
    """The last bytes of it."""

    @property
    def kept(self) -> Kept:
        """Return what is kept of it in memory, and whether its file has that too."""
        return Kept(self.last, self.file is not None and self.file.is_whole, self.file is not None)


class LogPump:
    """Starts its thread with the first stream at the latest. `failed` is called with an error that ends the thread. An
    unfinished line is shown after `prompt_s`. Files are opened by `disk`."""

    def __init__(
        self, disk: Disk, failed: Callable[[BaseException], object] = threads.shown, prompt_s: float = PROMPT_S
    ) -> None:
        self._disk = disk
        self._prompt_s = prompt_s
        self._prompts: dict[Stream, float] = {}
        """The streams with a part of a line that is not shown, each with the time at which that is due."""
        self._changed = threading.Condition()
        self._streams: dict[int, Stream] = {}
        self._finishing: dict[Stream, None] = {}
        self._unclosed: dict[Stream, None] = {}
        """The streams that have files which are not closed yet."""
        self._closing = self._closed = False
        self._closes_at = 0.0
        self._consoles: dict[tuple[int, int], _Console] = {}
        self._polled: dict[int, _Console] = {}
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._closing_files: SimpleQueue[tuple[Stream, LogFile]] = SimpleQueue()
        """The files that the writer has closed, each with its stream."""
        self._writer = LogWriter(partial(os.eventfd_write, self._wake, 1), failed)
        run = threads.guarded(self._run, failed)
        self._thread = threading.Thread(target=run, name="elastic-log-pump", daemon=True)

    def follow(self, source: int, path: Path, console: int, prefix: str, duplicate: Duplicate | None = None) -> Stream:
        """Carry what comes out of the pipe `source` (ours to close) until it ends or `finish`. Raises OSError."""
        with ExitStack() as undo:
            undo.callback(os.close, source)
            file = self._appended(path, undo)
            stream = Stream(source, file, console, os.fsencode(prefix))
            if duplicate:
                stream.needles, stream.duplicate = duplicate.needles, self._appended(duplicate.path, undo)
            undo.pop_all()
        os.set_blocking(source, False)
        self._streams[source] = stream
        self._unclosed[stream] = None
        self._epoll.register(source, select.EPOLLIN)
        self.start()
        return stream

    def start(self) -> None:
        """Start the thread. Best done before the machine is busy with new processes: it waits for the thread. Idempotent."""
        self._writer.start()
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
        """Carry what there is, stop the threads; a console that does not read, or a disk that stands still, is waited for so
        long. Raises TimeoutError with the files that lack some of the output. Idempotent."""
        if self._closed:
            return
        self._closing, self._closes_at = True, time.monotonic() + timeout_s
        os.eventfd_write(self._wake, 1)
        if self._thread.ident is not None:
            self._thread.join(timeout_s + _JOIN_TIMEOUT_S)
        if not self._thread.is_alive():
            self._writer.rest(is_idle=True)  # an error may have ended it
        if self._writer.stop(self._closes_at) and not self._thread.is_alive():
            self._closed = True
            self._files_closed()  # one may have failed at last
            self._epoll.close()
            os.close(self._wake)
            for console in self._consoles.values():
                console.leave(None)
                console.to.close()
        if lost := self._unwritten():
            raise TimeoutError(f"{', '.join(lost)}: the disk does not answer, the end of this output is not written")

    def _unwritten(self) -> list[str]:
        """Return the files that are not whole, but for those that have failed."""
        files = [file for stream in list(self._unclosed) for file in (stream.file, stream.duplicate) if file]
        return sorted({str(file.path) for file in files if file.waiting and not file.error})

    def _run(self) -> None:
        while not self._closing:
            waits = (self._until_prompt_s(), self._writer.rest_s)
            self._step(min((each for each in waits if each is not None), default=None))
            self._show_prompts()
        for stream in list(self._streams.values()):
            self._carry_rest(stream)
        while self._polled and (left := self._closes_at - time.monotonic()) > 0:
            self._step(left)

    def _step(self, timeout_s: float | None) -> None:
        found = self._epoll.poll(timeout_s)
        self._writer.rest(is_idle=not found)
        for ready, _ in found:
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
        self._files_closed()
        for stream in list(self._streams.values()):  # the writer may have woken this thread
            self._look_at_file(stream)
            self._watch(stream, not self._has_to_wait(stream))

    def _carry_once(self, stream: Stream) -> int:
        """Bytes carried; 0 if the pipe is empty for now, or at its end, and then the stream is closed."""
        try:
            chunk = os.read(stream.source, _READ_MAX)
        except BlockingIOError:
            return 0
        if chunk:
            stream.last = chunk[-KEPT_MAX:] if len(chunk) >= KEPT_MAX else (stream.last + chunk)[-KEPT_MAX:]
            self._to_file(stream, chunk)
            data = stream.rest + chunk
            text, stream.rest = cut(data, stream.prefix)
            self._to_console(stream, text)
            self._expect_prompt(stream)
            self._duplicate(stream, data[: len(data) - len(stream.rest)])
        else:
            self._end(stream)
        return len(chunk)

    def _carry_rest(self, stream: Stream) -> None:
        """Carry what the pipe holds now, but not what a living writer goes on to write: at most as much as fits into it."""
        left = 0 if stream.ending else fcntl.fcntl(stream.source, fcntl.F_GETPIPE_SZ)
        while left > 0 and (carried := self._carry_once(stream)):
            left -= carried
        self._end(stream)

    def _end(self, stream: Stream) -> None:
        if stream.ending:
            return
        stream.ending = True
        self._to_console(stream, last(stream.rest, stream.prefix))
        self._duplicate(stream, stream.rest)
        self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        del self._streams[stream.source]
        self._prompts.pop(stream, None)
        self._watch(stream, False)
        os.close(stream.source)
        for file in (stream.duplicate, stream.file):
            if file:
                self._writer.end(file, partial(self._closing_files.put, (stream, file)))
        if not stream.file:
            self._is_closed(stream)

    def _files_closed(self) -> None:
        """Take what the writer has closed since."""
        while not self._closing_files.empty():
            stream, file = self._closing_files.get()
            if file is stream.file:
                self._look_at_file(stream)
                self._is_closed(stream)

    def _is_closed(self, stream: Stream) -> None:
        for console in self._consoles.values():
            console.streams.discard(stream)
        with self._changed:
            stream.closed = True
            self._unclosed.pop(stream, None)
            self._finishing.pop(stream, None)
            self._changed.notify_all()

    # --- files

    def _appended(self, path: Path, undo: ExitStack) -> LogFile | None:
        """Return the file to append to; None for one that stores nothing. Raises OSError."""
        if path == NOWHERE:
            return None
        descriptor = self._disk.do(partial(os.open, path, _APPENDS, 0o666), late=os.close)
        undo.callback(self._disk.later, partial(os.close, descriptor))
        return LogFile(descriptor, path)

    def _to_file(self, stream: Stream, data: bytes) -> None:
        if stream.file and not stream.is_file_lost:
            self._writer.put(stream.file, data)
            self._watch(stream, not self._has_to_wait(stream))

    def _look_at_file(self, stream: Stream) -> None:
        """Say once that the file of a stream has failed."""
        if stream.file and stream.file.error and not stream.is_file_lost:
            stream.is_file_lost = True
            text = f"{stream.file.path}: {why(stream.file.error)}: from here on this output is on the console only\n"
            self._in_between(stream, stream.prefix + os.fsencode(text))

    def _duplicate(self, stream: Stream, data: bytes) -> None:
        if stream.duplicate and (found := matching(data, stream.needles, stream.prefix)):
            self._writer.put(stream.duplicate, found)
            self._watch(stream, not self._has_to_wait(stream))

    # --- consoles

    def _console(self, stream: Stream) -> _Console:
        """Return one console for all descriptors of the same place: two would write into each other's lines."""
        place = identity(stream.console)
        if place not in self._consoles:
            self._consoles[place] = _Console(Console(stream.console), place)
        console = self._consoles[place]
        console.streams.add(stream)
        return console

    def _to_console(self, stream: Stream, text: bytes) -> None:
        """Show whole lines. The first one may be on the console already, as far as it was written then."""
        if not text:
            return
        console = self._console(stream)
        if stream.shown:
            text = text[len(stream.prefix) + stream.shown :]
            if console.open is not stream:  # that line has ended there: what is new of it gets a line of its own
                text = text[1:] if text.startswith(b"\n") else stream.prefix + text
            stream.shown = 0
        goes_on = console.open is stream
        if text:
            if not goes_on:
                self._begin_line(console)
            console.to.put(text)
            self._settle(console)
        if goes_on:
            console.leave(None)

    def _in_between(self, stream: Stream, line: bytes) -> None:
        """Show a line that is none of the stream's own."""
        console = self._console(stream)
        self._begin_line(console)
        console.to.put(line)
        self._settle(console)

    def _begin_line(self, console: _Console) -> None:
        """End the unfinished line that is the last one on the console, if there is one."""
        if console.open:
            console.to.put(b"\n")
            console.leave(None)

    def _expect_prompt(self, stream: Stream) -> None:
        """Have an unfinished line shown, if none of it follows soon."""
        if len(showable(stream.rest)) > stream.shown:
            self._prompts[stream] = time.monotonic() + self._prompt_s
        else:
            self._prompts.pop(stream, None)

    def _until_prompt_s(self) -> float | None:
        return max(min(self._prompts.values()) - time.monotonic(), 0.0) if self._prompts else None

    def _show_prompts(self) -> None:
        now = time.monotonic()
        for stream in [stream for stream, due in self._prompts.items() if due <= now]:
            del self._prompts[stream]
            console, text = self._console(stream), showable(stream.rest)
            begins = console.open is not stream
            if begins:
                self._begin_line(console)
            console.leave(stream)  # first: who sees the prompt may have the launcher say something at once
            console.to.put((stream.prefix if begins else b"") + text[stream.shown :])
            stream.shown = len(text)
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
                self._watch(stream, not self._has_to_wait(stream))

    def _has_to_wait(self, stream: Stream) -> bool:
        """Return True if it has ended, or if its console or one of its files has too much to take already."""
        if stream.ending:
            return True
        if any(file and file.is_full for file in (stream.file, stream.duplicate)):
            return True
        return any(each.paused and stream in each.streams for each in self._consoles.values())

    def _watch(self, stream: Stream, watched: bool) -> None:
        if watched != stream.watched:
            stream.watched = watched
            if watched:
                self._epoll.register(stream.source, select.EPOLLIN)
            else:
                self._epoll.unregister(stream.source)
