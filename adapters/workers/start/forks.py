"""Workers that another process forks, a server: the agent's end of it (workers/start/function.py).

`fork`: the server is a copy of the caller, made before any thread of ours exists. `forkserver`: it is executed afresh, and
again if it died. Beside code of others, whose children nobody tells from orphans of workers, a server executes the workers'
programs: the orphans are its own. Workers die with the server by the kernel's parent-death signal. When the agent's thread
has ended, or its end of the socket is closed, the server kills all its descendants and ends.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ....core.values import frozen
from ... import pidfds
from ...clock import poll_ms
from ...secret_variables import without_secrets
from ..watch.process_groups import died_within
from ..worker_port import CannotStart, WorkerSpec
from . import function
from .function import Call, receive, send
from .programs import find_setpriv
from .spawner import Death, Process, WorkerStart, until

_LOST = Death(-signal.SIGKILL)
"""The death of a worker whose server has died."""


_END_TIMEOUT_S = 5.0
_ANSWER_TIMEOUT_S = 30.0
"""A server that runs nothing of the user's and does not answer for this long counts as dead."""


class _Server:
    """A server, and the socket to it. One that `loads` says so once it has imported the user's code, which takes its time.
    The pidfd tells of its death even if the program ignores SIGCHLD, so that the kernel reaps it."""

    def __init__(
        self, pid: int, control: socket.socket, *, loads: bool = False, answer_timeout_s: float = _ANSWER_TIMEOUT_S
    ) -> None:
        self._pid = pid
        self._pidfd = pidfds.opened(pid)
        self._control = control
        self._control.settimeout(answer_timeout_s)
        self._answer_timeout_s = answer_timeout_s
        self._loads = loads
        self._answers = True

    def ask(self, content: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Mapping[str, Any] | None:
        """Return its answer; None if it has died, even if nothing else shows that yet. One that did not answer in time is
        never asked again: its late answer would be taken for another one."""
        if not self._answers:
            return None
        try:
            if self._loads:
                self._heard(None)
                self._loads = False
            send(self._control, content, descriptors)
            answer = self._heard(self._answer_timeout_s)
        except OSError:
            answer = None
        self._answers = answer is not None
        return answer[0] if answer else None

    def _heard(self, timeout_s: float | None) -> tuple[dict[str, Any], list[int]] | None:
        """Return its next message, None at the end. It has died if nothing came and its pidfd says so: what it imported may
        have started processes that hold its socket. Raises OSError."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._pidfd):
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if timeout_s is None else poll_ms(timeout_s))
        return receive(self._control) if self._control.fileno() in dict(ready) else None

    def forked(self, content: Mapping[str, Any], streams: Mapping[int, int], reports: int | None = None) -> _Forked:
        """Return the worker that it forks: with these descriptors, by the numbers that they have there. Raises OSError."""
        cpus = sorted(os.sched_getaffinity(0))  # this thread's, which may be bound for this worker's sake
        request = {**content, "streams": list(streams), "cpus": cpus}
        answer = self.ask(request, [*streams.values(), *filter(None, [reports])])
        if answer is None or "error" in answer:
            code, why = answer["error"] if answer else (0, "the process that forks the workers has died")
            raise OSError(code, why)
        return _Forked(self, answer["pid"])

    def is_alive(self) -> bool:
        return self._answers and not died_within(self._pidfd, 0.0)

    def close(self) -> None:
        """Have it kill what is left of its workers, and end. One that does not is killed itself."""
        self._answers = False
        with suppress(OSError):  # which also tells if a copy of this process holds the socket
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            if not died_within(self._pidfd, _END_TIMEOUT_S):
                pidfds.send(self._pidfd, signal.SIGKILL)
                died_within(self._pidfd, _END_TIMEOUT_S)
            os.waitpid(self._pid, os.WNOHANG)
        except (ProcessLookupError, ChildProcessError):
            pass  # the kernel has reaped it
        finally:
            os.close(self._pidfd)


@frozen
class _Forked:
    server: _Server
    pid: int

    def reap(self, timeout_s: float) -> Death | None:
        return until(self._reaped, timeout_s)

    def _reaped(self) -> Death | None:
        answer = self.server.ask({"reap": self.pid})
        if answer is None:
            return _LOST
        return Death(answer["code"], answer["dumped"]) if answer else None


class Forking:
    """The spawner of forked workers. It ignores `command`: the server knows what to call."""

    def __init__(self, make: Callable[[], _Server], *, again: bool) -> None:
        """`again`: a server that died can be replaced. One that cannot is made at once."""
        self._make = make
        self._again = again
        self._server = None if again else make()

    def check(self, specs: Sequence[WorkerSpec]) -> None:
        if self._server and self._server.is_alive():
            return
        if not self._again:
            raise CannotStart("the process that forks the workers has died; start the job again")
        self.close()
        self._server = self._make()

    def spawn(self, start: WorkerStart) -> Process:
        assert self._server
        streams = {number: each for number, each in ((1, start.stdout), (2, start.stderr)) if each is not None}
        return self._server.forked({"environment": dict(start.environment)}, streams, start.reports)

    def close(self) -> None:
        server, self._server = self._server, None
        if server:
            server.close()


class Serving:
    """The executor whose programs are children of a server. It is executed at once, and again if it died."""

    def __init__(self) -> None:
        self._server: _Server | None = None
        with suppress(OSError, CannotStart):  # the first program says what is missing
            self._server = _program_server()

    def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        stdout: int | None,
        stderr: int | None,
        kept: Sequence[int] = (),
    ) -> Process:
        if self._server is None or not self._server.is_alive():
            self.close()
            self._server = _program_server()
        streams = [default if each is None else each for default, each in ((1, stdout), (2, stderr))]
        given = {1: streams[0], 2: streams[1], **{number: number for number in kept}}
        tied = [find_setpriv(), "--pdeathsig", "KILL", "--", *command]
        content = {"command": tied, "environment": dict(environment)}
        return self._server.forked(content, given)

    def close(self) -> None:
        server, self._server = self._server, None
        if server:
            server.close()


def _program_server() -> _Server:
    return _execute("", "-I", "-S")


def forking(call: Call, folder: str) -> Forking:
    """Start method `fork`, from this process as it is now."""
    return Forking(lambda: _fork(call, folder), again=False)


def fork_server(folder: str, answer_timeout_s: float = _ANSWER_TIMEOUT_S) -> Forking:
    """Start method `forkserver`."""
    return Forking(lambda: _execute(folder, "-u", "-P", answer_timeout_s=answer_timeout_s), again=True)


def _fork(call: Call, folder: str) -> _Server:
    ours, theirs = socket.socketpair()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()  # or each worker would say it again
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            function.die_with(parent, signal.SIGTERM)
            ours.close()
            function.serve(theirs, lambda: call, folder)
        finally:
            os._exit(0)
    theirs.close()
    return _Server(pid, ours)


def _execute(folder: str, *options: str, answer_timeout_s: float = _ANSWER_TIMEOUT_S) -> _Server:
    """Execute a server. One that has a folder loads the call in it first."""
    ours, theirs = socket.socketpair()
    number = str(theirs.fileno())
    command = [
        find_setpriv(),
        "--pdeathsig",
        "TERM",
        "--",
        sys.executable,
        *options,
        function.__file__,
        folder,
        number,
    ]
    with theirs:
        process = subprocess.Popen(command, env=without_secrets(), pass_fds=[theirs.fileno()], start_new_session=True)
    process.returncode = 0  # it is reaped here, and not when it is thrown away
    return _Server(process.pid, ours, loads=bool(folder), answer_timeout_s=answer_timeout_s)
