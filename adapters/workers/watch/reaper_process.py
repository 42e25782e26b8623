"""The agent's end of the reaper, the program that kills the workers of an agent that was killed (workers/watch/reaper.py).

The agent names each worker's process group through a pipe. The pipe is made first, so nothing waits for the program's
start. Messages never block: a reaper that does not read is killed. One that died is started again by the watcher's thread,
and told everything anew; hence the lock.

Each worker carries the token in its environment, behind those of the agents it runs under, so that the outer agent's
reaper finds the workers of an inner one. A reaper itself carries none: it must outlive the outer one's search.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ... import pidfds
from ...clean_up import await_end, end_process
from ...secret_variables import without_secrets
from . import reaper
from .oom_score import Protection

_VARIABLE = "ELASTIC_AGENT"
"""The environment variable that carries the tokens, outermost first."""
STARTS_MAX = 100
"""A reaper that cannot live must not be started for ever."""
_ROOT = "/"
_PROGRAM = Path(reaper.__file__)


class ReaperProcess:
    """A reaper that runs, and the groups that it was told of."""

    def __init__(
        self, python: str = sys.executable, listener: int | None = None, protection: Protection | None = None
    ) -> None:
        """`listener` is a listening socket that the reaper keeps open as long as a process of the node lives. `protection`
        from the out-of-memory killer is for this process and the reaper, and not for workers."""
        self.protection = protection or Protection()
        self._python = python
        self._listener = () if listener is None else (listener,)
        self._token = os.urandom(16).hex()
        self._lock = threading.Lock()
        self._held: dict[int, None] = {}
        self._is_starting = False
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = self._pidfd = -1
        self._starts = 0

    @property
    def token(self) -> bytes:
        """A worker, and all that it starts, carries this in its environment."""
        return self._token.encode()

    @property
    def pid(self) -> int | None:
        """The reaper's process id, if it was started."""
        return None if self._process is None else self._process.pid

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """A worker's environment, with the token."""
        outer = base.get(_VARIABLE)
        return {**base, _VARIABLE: f"{outer}:{self._token}" if outer else self._token}

    def start(self) -> int | None:
        """Start a reaper, in place of one that died too; its pidfd (ours to close), or None: it died too often."""
        with self.protection.kept(), self._lock:  # the order of a thread that replaces a dead standby
            self._end()
            if self._starts == STARTS_MAX:
                return None
            self._starts += 1
            starting = [reaper.STARTING] if self._is_starting else []
            told = "".join(f"+{group}\n" for group in (*starting, *self._held))
            self._process, self._pipe = _spawn(self._python, self._token, told, self._listener)
            self._pidfd = pidfds.opened(self._process.pid)
            return self._pidfd

    def expect(self) -> None:
        """Say that processes are about to be started, whose groups nobody knows before `hold`."""
        with self._lock:
            self._is_starting = True
            self._send(f"+{reaper.STARTING}\n")

    def hold(self, groups: Sequence[int]) -> None:
        """Name these groups, and with them the end of what `expect` began. One message names all: each wakes the reaper,
        which then takes a processor from the new workers."""
        with self._lock:
            self._held.update(dict.fromkeys(groups))
            ends = f"-{reaper.STARTING}\n" if self._is_starting else ""
            self._is_starting = False
            self._send("".join(f"+{group}\n" for group in groups) + ends)

    def forget(self, group: int) -> None:
        with self._lock:
            if group in self._held:
                del self._held[group]
                self._send(f"-{group}\n")

    def close(self, lasting: Collection[int] = ()) -> None:
        """Kill what workers have left in sessions of their own; then the reaper, to which nothing is left. It does that
        itself if this process cannot look into /proc: then its pipe is closed alone. Those of `lasting` were killed, and are
        not waited for. Idempotent."""
        with self._lock:
            if self._process is None:
                return
            try:
                reaper.kill_all_carriers(self.token, lasting=frozenset(lasting))
            except OSError:
                os.close(self._pipe)
                await_end(self._process)
                self._process, self._pipe = None, -1
                self._forget_pidfd()
            else:
                self._end()

    def _send(self, text: str) -> None:
        if self._process is None:
            return
        try:
            os.write(self._pipe, text.encode())
        except BrokenPipeError:
            pass  # it is dead: the next one will be told
        except BlockingIOError:
            self._process.kill()  # it does not read: so will the next one

    def _end(self) -> None:
        if self._process is None:
            return
        end_process(self._process)
        self._process = None
        os.close(self._pipe)
        self._forget_pidfd()

    def _forget_pidfd(self) -> None:
        if self._pidfd != -1:
            os.close(self._pidfd)
            self._pidfd = -1


def _spawn(python: str, token: str, told: str, held: tuple[int, ...]) -> tuple[subprocess.Popen[bytes], int]:
    """A reaper that finds in its pipe what it is told, so that it knows it from its first moment on.

    Its output goes nowhere: a copy of the agent's would hold up a reader of that output after the agent's end.
    """
    environment = {name: value for name, value in without_secrets().items() if name != _VARIABLE}
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        os.write(write, told.encode())
        process = subprocess.Popen(
            [python, "-I", "-S", str(_PROGRAM), token],
            stdin=read,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env=environment,
            start_new_session=True,
            pass_fds=held,
        )
    except OSError as error:
        os.close(write)
        if error.filename == _ROOT:  # what Python names for all that fails before the program is executed
            raise OSError(error.errno, f"{os.strerror(error.errno or 0)}: setsid, for a session of its own") from error
        raise
    finally:
        os.close(read)
    return process, write
