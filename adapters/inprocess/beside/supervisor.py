"""The supervisor of the monitor process (`monitor.py`): it starts the monitor, starts it again when it dies, and lets it go.

A thread waits for the monitor's death by pidfd, and renews the kernel's alarm at intervals. If that thread cannot run and
the monitor is dead, the alarm ends the process.
"""

from __future__ import annotations

import json
import logging
import math
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from msgspec.structs import asdict

from ....core.backoff import pause_s
from ....core.inprocess.monitoring import Rules
from ....core.values import frozen
from ....core.world import Node
from ... import kernel, pidfds, threads
from ...clean_up import await_end, end_process, run_all
from ...secret_variables import without_secrets
from ..gate.alarm import Alarm
from ..shared_page import BYE, Page, to_inherit

log = logging.getLogger("elastic.inprocess")

PROGRAM = "elastic.adapters.inprocess.beside.monitor"
BEAT_S = 1.0
"""The interval in which the alarm is renewed."""
SHORT_LIFE_S = 1.0
"""A monitor that dies sooner is started again after a pause, which doubles each time, up to `PAUSE_MAX_S`."""
PAUSE_MIN_S, PAUSE_MAX_S = 0.1, 5.0
PATIENCE_S = 5.0
"""How long the first start is tried again before the call is given up."""

_made: set[Path] = set()
"""The pid files that this process has made. One that was there before stays."""
_pid_files = threading.Lock()
"""Held while a pid file is written or removed: two calls, one after the other, may share one."""


@frozen
class Charge:
    """The monitor's charge: the node that it speaks for, the register (`RankConnection.route`), and its rules."""

    node: Node
    place: Mapping[str, object]
    rules: Rules
    heartbeat_interval_s: float
    log: Path | None = None

    def written(self, page: int, bell: int, process: int) -> bytes:
        return json.dumps(
            {
                "node": list(self.node),
                "place": dict(self.place),
                "rules": asdict(self.rules),  # type: ignore[arg-type]
                "heartbeat_interval_s": self.heartbeat_interval_s,
                "log": str(self.log) if self.log else None,
                "page": page,
                "bell": bell,
                "process": process,
                "pid": os.getpid(),
            }
        ).encode()


def _claim(file: Path) -> None:
    """Make sure that the file may hold a pid: it is made here, or is empty, or holds a number. Raises FileExistsError."""
    if not file.exists():
        _made.add(file)
    elif file not in _made:
        held = b"no file"
        if file.is_file():
            with file.open("rb") as opened:
                held = opened.read(32).strip()
        if held and not held.isdigit():
            raise FileExistsError(f"{file} holds something else, and is left as it is")


def _own_pidfd() -> int:
    """Return a pidfd of this process for the monitor; -1 where the host refuses one."""
    try:
        return to_inherit(os.pidfd_open(os.getpid()))
    except OSError:
        if kernel.slower():
            return -1
        raise


class Supervisor:
    """The supervisor of one process's monitor. Close it after the page says `Bye`."""

    def __init__(
        self,
        page: Page,
        charge: Charge,
        alarm: Alarm | None = None,
        python: str = sys.executable,
        pid_file: Path | None = None,
        failed: Callable[[BaseException], object] = threads.shown,
    ) -> None:
        """`pid_file` holds the monitor's pid for as long as the monitor lives. `failed` is called with an error that ends
        the thread: nobody would start a monitor again."""
        self._pid_file = pid_file
        self._page = page
        self._charge = charge
        self._alarm = alarm
        self._python = python
        self._self = _own_pidfd()
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._started_at = 0.0
        self._starts = 0
        self._tries = 0
        run = threads.guarded(self._run, failed)
        self._thread = threading.Thread(target=run, name="elastic-supervisor", daemon=True)

    @property
    def pid(self) -> int | None:
        """The monitor's pid; None before its start."""
        return self._process.pid if self._process else None

    @property
    def starts(self) -> int:
        return self._starts

    def start(self) -> None:
        """Start the monitor and the thread that watches it. Raises OSError if the host has none to give for `PATIENCE_S`."""
        self._check_log()
        if self._self == -1 and "relay" not in self._charge.place:  # else the launcher has said it
            log.warning("%s", kernel.slower())
        ends_at = time.monotonic() + PATIENCE_S
        while not self._spawned(ends_at):
            self._is_stopped(PAUSE_MIN_S)
        threads.start(self._thread)

    def _check_log(self) -> None:
        try:
            with self._charge.log.open("ab") if self._charge.log else nullcontext():
                pass
        except OSError as error:
            log.warning("the monitor process keeps no log: %s", error)

    def close(self, timeout_s: float) -> None:
        """Have the monitor read the page's `Bye`. Kill it if it has not ended after `timeout_s`. Idempotent."""
        if self._stop == -1:
            return
        os.eventfd_write(self._stop, 1)
        if self._thread.ident is not None:
            self._thread.join()
        stop, self._stop = self._stop, -1
        run_all(
            lambda: self._end(timeout_s),
            self._remove_pid,
            *(partial(os.close, each) for each in (stop, self._self, self._pidfd) if each != -1),
        )

    def _end(self, timeout_s: float) -> None:
        if self._process is None:
            return
        self._page.ring()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            end_process(self._process)

    def _spawn(self) -> None:
        """Start a monitor. Raises OSError."""
        given = [self._page.descriptor, self._page.bell, *([self._self] if self._self != -1 else [])]
        process = subprocess.Popen(
            [self._python, "-P", "-m", PROGRAM],
            env=without_secrets(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=given,
            start_new_session=True,
        )
        assert process.stdin
        try:
            pidfd = pidfds.opened(process.pid)
        except OSError:
            process.stdin.close()
            end_process(process)
            raise
        if self._pidfd != -1:
            os.close(self._pidfd)
        self._process, self._pidfd = process, pidfd
        self._starts += 1
        self._started_at = time.monotonic()
        self._write_pid()  # the monitor does nothing before it has its charge, so the file is there first
        try:
            process.stdin.write(self._charge.written(self._page.descriptor, self._page.bell, self._self))
            process.stdin.close()
        except BrokenPipeError:
            pass  # it is dead, and will be started again

    def _write_pid(self) -> None:
        if self._pid_file and self._process:
            try:
                with _pid_files:
                    _claim(self._pid_file)
                    self._pid_file.write_text(f"{self._process.pid}\n")
            except OSError as error:
                log.warning("the monitor process is %s, which cannot be written down: %s", self._process.pid, error)

    def _remove_pid(self) -> None:
        """Remove the pid file, unless the next call has written it meanwhile, or it was there before."""
        if self._pid_file and self._process:
            with _pid_files, suppress(OSError):
                if self._pid_file in _made and self._pid_file.read_text() == f"{self._process.pid}\n":
                    self._pid_file.unlink()
                    _made.discard(self._pid_file)

    # --- the thread

    def _run(self) -> None:
        while self._wait_for_death():
            assert self._process
            await_end(self._process)
            code = self._process.returncode
            if code == 0 and self._page.words[BYE]:
                return  # the call is over; a child that others reap, or nobody has to, has the code 0 too
            log.warning("the monitor process of %s died (%s); starting another", self._charge.node, code)
            short = time.monotonic() - self._started_at < SHORT_LIFE_S
            if not short:
                self._tries = 0
            elif self._paused():
                return
            while not self._spawned():
                if self._paused():
                    return

    def _spawned(self, ends_at: float = math.inf) -> bool:
        """Start a monitor. Return False if the host cannot give one now. Raises OSError after `ends_at`."""
        try:
            self._spawn()
        except OSError as error:
            if time.monotonic() >= ends_at:
                raise
            log.error("the monitor process of %s cannot be started, and is tried again: %s", self._charge.node, error)
            return False
        return True

    def _paused(self) -> bool:
        """Wait, longer after each try, and not before the first. Return True when the monitor is to be let go."""
        pause = pause_s(self._tries, PAUSE_MIN_S, PAUSE_MAX_S) if self._tries else 0.0
        self._tries += 1
        return self._is_stopped(pause)

    def _wait_for_death(self) -> bool:
        """Wait. Return True when the monitor has died, False when it is to be let go."""
        while not (ready := self._ready(BEAT_S, self._pidfd, self._stop)):
            pass
        return self._stop not in ready

    def _is_stopped(self, within_s: float) -> bool:
        ends_at = time.monotonic() + within_s
        while not (stopped := self._ready(ends_at - time.monotonic(), self._stop)) and time.monotonic() < ends_at:
            pass
        return bool(stopped)

    def _ready(self, within_s: float, *descriptors: int) -> list[int]:
        """Return the descriptors that are readable; none after at most `BEAT_S`. Renew the alarm: this thread is at work."""
        if self._alarm:
            self._alarm.beat()
        poll = select.poll()
        for each in descriptors:
            poll.register(each, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(min(max(within_s, 0.0), BEAT_S) * 1000)]
