"""The check of a node: a command that says by its exit code whether workers may run on this host.

The command runs in a thread's child, in a session of its own, and dies with the agent as a worker does. What it prints is
read as it comes, and only its end is kept, so a check that prints without end waits for nothing and fills nothing. At its
end, or when its time is over, all that it has started is killed: its group, and whatever carries its token.

It runs before the node joins, or again and again while the job runs. The first lets the node join if it hangs, since no
worker lives beside it. The second finds the node unfit then.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from attrs import define, field

from ....core.values import frozen
from ... import pidfds, threads
from ...clock import poll_ms
from ...launch_settings import NodeCheck
from ...terminal import printable, why
from ..messages.error_files import exit_sentence
from ..watch import reaper
from ..watch.oom_score import Protection
from ..watch.process_groups import died_within, send
from ..worker_port import CannotStart
from .programs import find_setpriv

UNFIT = 1
"""The exit code of a command that finds the node unfit."""
LINE_MAX = 300
_KEPT_MAX = 8_192
_READ_MAX = 65_536
_DRAINS_MAX = 64
_DYING_TIMEOUT_S = 1.0
"""The check waits this long for what was killed: the kernel may hold on to it."""
_CLOSING_TIMEOUT_S = 5.0
"""The agent's end waits this long for a check: a command that is killed in a driver's call may die much later, or never."""
_PASS_S = 0.01
"""Each pass over what carries the token waits this long for what it killed: a device may hold on to one."""
_STOOD_STILL_S = 1.0
"""A limit that is heard of this much later passed while this process stood still, and the check too perhaps."""
_VARIABLE = "ELASTIC_NODE_CHECK"


@frozen
class Finding:
    """It holds what a check says. `text` is the reason of a node that is not fit, else a warning or empty."""

    is_fit: bool
    text: str = ""


@define(eq=False)
class NodeChecks:
    """The checks of one node, one after the other. `tell(is_fit, text)` is called from a thread, once for each check: one a
    `start`; or those that go on from there, until one finds the node unfit."""

    settings: NodeCheck
    environment: Mapping[str, str]
    tell: Callable[[bool, str], None]
    protection: Protection = field(factory=Protection)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _pid: int | None = field(default=None, init=False)
    """The process id of the command, while it is not reaped."""
    _closed: threading.Event = field(factory=threading.Event, init=False)

    @property
    def _name(self) -> str:
        return "the node check" if self.settings.every is None else "the watch check"

    def start(self) -> None:
        """Run the command, or begin to. A host that has no thread for it lets the node join, or stay."""
        thread = threading.Thread(target=self._run, name="elastic-node-check", daemon=True)
        try:
            threads.start(thread)
        except threads.NoThread as error:
            self.tell(True, f"{self._name} did not run: {why(error)}")
            return
        self._thread = thread

    def close(self) -> None:
        """Kill the command that runs, and end the thread, unless the kernel holds on to the command. Idempotent."""
        with self._lock:
            self._closed.set()
            if self._pid is not None:
                send(self._pid, signal.SIGKILL)
        if self._thread:
            self._thread.join(_CLOSING_TIMEOUT_S)

    def _run(self) -> None:
        while not self._closed.wait(self.settings.every or 0.0):
            found = self._checked()
            if found is not None:
                self.tell(found.is_fit, found.text)
            if self.settings.every is None or found is None or not found.is_fit:
                return

    def _checked(self) -> Finding | None:
        """Run the command once; None if the agent is over."""
        token = os.urandom(16).hex()
        try:
            process = self._started(token)
        except (OSError, CannotStart) as error:
            reason = why(error) if isinstance(error, OSError) else str(error)
            return Finding(True, f"{self._name} cannot be started: {reason}")
        if process is None:
            return None
        assert process.stdout
        with process.stdout as output:
            try:
                found = self._watched(process, output.fileno())
            except OSError as error:
                found = Finding(True, f"{self._name} cannot be watched: {why(error)}")
                self._kill(process)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_DYING_TIMEOUT_S)
        with suppress(OSError):  # no descriptor to look by; the agent's end looks again
            reaper.kill_all_carriers(token.encode(), _PASS_S)
        return found

    def _started(self, token: str) -> subprocess.Popen[bytes] | None:
        """Start the command; None if the agent is over. Raises OSError, CannotStart."""
        setpriv = find_setpriv()
        with self._lock:
            if self._closed.is_set():
                return None
            with self.protection.lifted():
                process = subprocess.Popen(
                    [setpriv, "--pdeathsig", "KILL", "--", *self.settings.command],
                    env={**self.environment, _VARIABLE: token},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._pid = process.pid
            return process

    def _watched(self, process: subprocess.Popen[bytes], output: int) -> Finding:
        """Read what the command prints until it ends or its time is over; then kill its group and reap it."""
        pidfd = pidfds.opened(process.pid)
        try:
            end = _end_of(pidfd, output, self.settings.timeout)
            self._kill(process)
            if end is None:
                died_within(pidfd, _DYING_TIMEOUT_S)
                process.poll()
                limit = f"{self.settings.timeout:g} s (--node-check-timeout)"
                return Finding(self.settings.every is None, f"{self._name} did not end within {limit}")
            return found(process.wait(), end, self._name)
        finally:
            os.close(pidfd)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the command's group, before the command is reaped."""
        with self._lock:
            self._pid = None
        send(process.pid, signal.SIGKILL)


def found(code: int, output: bytes, name: str = "the node check") -> Finding:
    """Return what an exit code (subprocess's) and the end of the output say."""
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    last = printable(lines[-1].strip())[:LINE_MAX] if lines else ""
    if code == 0:
        return Finding(True)
    if code == UNFIT:
        return Finding(False, last or f"{name} said nothing and ended with exit code 1")
    ended = f"{'was' if code < 0 else 'ended with'} {exit_sentence(code)}"
    return Finding(True, f"{name} {ended}{f': {last}' if last else ''}")


def _end_of(pidfd: int, output: int, timeout: float) -> bytes | None:
    """Return the end of what was printed when the process is dead; None if it lives after this many seconds. It has them
    once more if this process stood still as they passed."""
    os.set_blocking(output, False)
    until = time.monotonic() + timeout
    kept, is_open, is_again = b"", True, False
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(output, select.POLLIN)
    while True:
        now = time.monotonic()
        if now >= until + _STOOD_STILL_S and not is_again:
            until, is_again = now + timeout, True
        left = until - now
        ready = {descriptor for descriptor, _ in poll.poll(poll_ms(max(left, 0.0)))}
        if pidfd in ready:  # perhaps for long: this process may have stood still
            return _drained(output, kept) if is_open else kept
        if left <= 0:
            return None
        if output in ready:
            data = _read(output)
            kept = (kept + (data or b""))[-_KEPT_MAX:]
            if data == b"":  # it has closed its output, and lives
                poll.unregister(output)
                is_open = False


def _drained(output: int, kept: bytes) -> bytes:
    """Return the end of the output with what is in the pipe now. A child that holds the pipe may go on to write."""
    for _ in range(_DRAINS_MAX):
        data = _read(output)
        if not data:
            break
        kept = (kept + data)[-_KEPT_MAX:]
    return kept


def _read(output: int) -> bytes | None:
    """Return what is there; None for nothing yet, no bytes for the end."""
    try:
        return os.read(output, _READ_MAX)
    except BlockingIOError:
        return None
