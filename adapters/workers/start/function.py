"""A program of its own: a worker that calls a Python function, or a server that forks such workers.

    python -u -P function.py FOLDER             calls it (start method `spawn`)
    python -u -P function.py FOLDER SOCKET      forks a worker for each request (start method `forkserver`)
    python -I -S function.py "" SOCKET          executes a worker's program for each request

FOLDER has the file `call`: what multiprocessing's own children are prepared with, so that functions of the parent's main
module are found, and the pickled call. What the function returned is left there too, in a file for each round and rank. An
uncaught exception is left in the error file, in torch's format, unless torch's @record has done so already. A forked worker
reports it to the agent (reports.py); in one that was executed, the start-up code does.

With the start method `fork` the server is forked from the parent, while that has no thread of ours, and holds the function
in memory. It has one thread, so that its workers are forked safely. It reaps a worker only on request: until then no other
process gets the worker's number. Requests and answers are JSON behind its length; descriptors travel beside that.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

CALL = "call"
_LENGTH = struct.Struct("!I")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PASSES_MAX = 100
"""A program that forks faster than it is killed must not keep the server for ever."""
_DESCRIPTORS_MAX = 1024
"""A worker's socket for reports has a number below this, as high as can be, so that the function opens low ones."""
_REAP_EVERY_MS = 1000
_GIVEN_MAX = 4
"""This many descriptors come with a request."""
NAMES = {1: "stdout", 2: "stderr"}


class Call(NamedTuple):
    """A function and what it is given."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]


def value_file(folder: str, round: int, rank: int) -> Path:
    return Path(folder, f"{round}.{rank}")


# --- a worker


Reporter = Callable[..., None]
"""Reports "raise" or "ending" to the agent, and the record of an exception that could not be written to its file."""


def _tells_nobody(what: str, record: str = "") -> None:
    pass


def work(load: Callable[[], Call], folder: str, report: Reporter = _tells_nobody) -> None:
    """Call the function, and leave its value or its exception in a file. `sys.exit(0)` counts as None, as for torch."""
    import faulthandler

    faulthandler.enable(2)
    with _reported(report):
        try:
            function, arguments, named = load()
            value = function(
                *map(_substituted, arguments), **{name: _substituted(each) for name, each in named.items()}
            )
        except SystemExit as end:
            if end.code:
                raise
            value = None
        _leave(value, value_file(folder, int(os.environ["ELASTIC_ROUND"]), int(os.environ["RANK"])))


def loaded(folder: str) -> Call:
    """The call, in a process that was executed."""
    import pickle
    from multiprocessing import spawn

    preparation, call = pickle.loads(Path(folder, CALL).read_bytes())
    spawn.prepare(preparation)
    return Call(*pickle.loads(call))


def _substituted(argument: Any) -> Any:
    """Replace `${local_rank}`, and `$$` by `$`, as in a program's arguments."""
    if not isinstance(argument, str) or "$" not in argument:
        return argument
    from string import Template

    return Template(argument).safe_substitute(local_rank=os.environ["LOCAL_RANK"])


def _leave(value: Any, file: Path) -> None:
    import pickle

    unfinished = f"{file}.unfinished"
    with open(unfinished, "wb") as out:
        try:
            pickle.dump(value, out, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as reason:
            raise TypeError(
                f"what the function returned cannot be handed back: {reason}; return plain values"
            ) from None
    os.replace(unfinished, file)


@contextmanager
def _reported(report: Reporter) -> Iterator[None]:
    """Write the record of an exception, and report "raise" for it, else "ending"."""
    what, record = "ending", ""
    try:
        yield
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        what = "raise"
        with suppress(OSError):
            record = _leave_record(error)
        raise
    finally:
        report(what, record)


def _leave_record(error: BaseException) -> str:
    folder = str(Path(__file__).parents[1] / "startup")
    sys.path.insert(0, folder)
    try:
        import elastic_raise  # type: ignore[import-not-found]
    finally:
        sys.path.remove(folder)
    trace = error.__traceback__
    while trace and trace.tb_next and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next  # it begins with what was called
    return elastic_raise.leave(os.environ.get("TORCHELASTIC_ERROR_FILE"), error, trace)  # type: ignore[no-any-return]


# --- the server


def serve(control: socket.socket, load: Callable[[], Call], folder: str) -> None:
    """Fork and reap workers as requested, until the agent has gone; then kill all their descendants, whatever they hide:
    the kernel gives this process their orphans."""
    server, before = os.getpid(), signal.getsignal(signal.SIGTERM)
    kept = set(_children())  # others wait for these: what the user's import has started, and the workers

    def end(signum: int, frame: object) -> None:  # the agent's thread has ended
        if os.getpid() == server:
            _kill_descendants()
        os._exit(128 + signum)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the caller may ignore it: then the kernel drops exit codes
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the caller's may block what a worker must hear
    restored = [signal.SIGPIPE, signal.SIGXFSZ]  # which Python ignores
    for signum in (signal.SIGUSR1, signal.SIGUSR2):  # a scheduler sends them to all processes; they are for the agent
        if signal.getsignal(signum) is signal.SIG_DFL:
            signal.signal(signum, signal.SIG_IGN)
            restored.append(signum)
    _adopt_orphans()
    poll = select.poll()
    poll.register(control.fileno(), select.POLLIN)
    with suppress(OSError):
        while True:
            came = poll.poll(_REAP_EVERY_MS)
            _reap_orphans(kept)
            if not came:
                continue
            request = receive(control)
            if request is None:
                break
            content, descriptors = request
            if "reap" in content:
                ended = _reaped(content["reap"])
                if ended:
                    kept.discard(content["reap"])
                send(control, ended)
                continue
            if "command" in content:
                answer = _executed(content, descriptors, restored)
            else:
                answer = _forked(content, descriptors, control, load, folder, before)
            kept.add(answer.get("pid", 0))
            send(control, answer)
    _kill_descendants()


def _adopt_orphans() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> list[int]:
    found = []
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{thread}/children", "rb") as children:
            found += [int(pid) for pid in children.read().split()]
    return found


def _reap_orphans(kept: set[int]) -> None:
    """Reap the dead that this process has adopted. The agent asks for the workers."""
    with suppress(OSError):  # no descriptor for now: at the next pass
        for pid in set(_children()) - kept:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _kill_descendants() -> None:
    lasting = set[int]()
    for _ in range(_PASSES_MAX):
        if not (children := set(_children()) - lasting):
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:  # another user's
                lasting.add(pid)
        for pid in children - lasting:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _reaped(pid: int) -> Mapping[str, Any]:
    """Return how the worker ended; nothing if it lives."""
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
    if end is None:
        return {}
    return {
        "code": end.si_status if end.si_code == os.CLD_EXITED else -end.si_status,
        "dumped": end.si_code == os.CLD_DUMPED,
    }


def _forked(
    content: Mapping[str, Any],
    descriptors: Sequence[int],
    control: socket.socket,
    load: Callable[[], Call],
    folder: str,
    on_term: Any,
) -> Mapping[str, Any]:
    """The worker's process id, once it leads its session and dies with this process."""
    ready, tell = os.pipe()
    server = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(tell)
        return {"error": (error.errno, error.strerror)}
    else:
        if pid == 0:
            code = 1
            try:
                signal.signal(signal.SIGTERM, on_term)
                control.close()
                os.close(ready)
                report = _settle(content, descriptors, server)
                os.close(tell)
                code = _bootstrapped(load, folder, report)
            finally:
                os._exit(code)
        os.close(tell)
        os.read(ready, 1)  # its end: the child has closed it, or is dead
        return {"pid": pid}
    finally:
        for descriptor in (ready, *descriptors):
            os.close(descriptor)


def _executed(content: Mapping[str, Any], descriptors: Sequence[int], restored: Sequence[int]) -> Mapping[str, Any]:
    """Execute a program, as the leader of a session. What it inherits has the numbers that the agent says."""
    import fcntl

    numbers: Sequence[int] = content["streams"]
    beyond, command, given = max((2, *numbers)) + 1, content["command"], list[int]()
    mine = os.sched_getaffinity(0)
    try:
        given += [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, beyond) for each in descriptors]
        for descriptor in descriptors:
            os.close(descriptor)
        os.sched_setaffinity(0, content["cpus"])  # which it inherits
        moves = [(os.POSIX_SPAWN_DUP2, each, number) for each, number in zip(given, numbers, strict=True)]
        pid = os.posix_spawn(
            command[0], command, content["environment"], file_actions=moves, setsid=True, setsigdef=restored
        )
    except (OSError, ValueError) as error:
        why = (error.errno, error.strerror) if isinstance(error, OSError) else (0, str(error))
        return {"error": why}
    else:
        return {"pid": pid}
    finally:
        os.sched_setaffinity(0, mine)
        for descriptor in given:
            os.close(descriptor)


def _settle(content: Mapping[str, Any], descriptors: Sequence[int], server: int) -> Reporter:
    """Become this worker; return its reporter."""
    os.setsid()
    die_with(server)
    os.sched_setaffinity(0, content["cpus"])
    count = len(content["streams"])
    for number, descriptor in zip(content["streams"], descriptors[:count], strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
        setattr(sys, NAMES[number], os.fdopen(number, "w", buffering=1, closefd=False))  # whatever the parent has there
    os.environ.clear()
    os.environ.update(content["environment"])
    return _reporter(*descriptors[count:])


def _reporter(given: int = 0) -> Reporter:
    """Return a reporter that writes to this socket, from this process alone. The socket gets a high number, and is closed in
    programs that the worker executes."""
    if not given:
        return _tells_nobody
    import time

    me, number = os.getpid(), min(os.sysconf("SC_OPEN_MAX"), _DESCRIPTORS_MAX) - 2
    os.dup2(given, number, inheritable=False)
    os.close(given)
    socket_is = os.fstat(number)[1:3]

    def report(what: str, record: str = "") -> None:
        with suppress(OSError):  # the agent has gone, or the function has closed it
            if os.getpid() == me and os.fstat(number)[1:3] == socket_is:
                os.write(number, f"{what} {time.monotonic()}\n{record}".encode())

    return report


def _bootstrapped(load: Callable[[], Call], folder: str, report: Reporter) -> int:
    """Run the call as multiprocessing runs a forked child: with finalizers, joined threads and flushed streams."""
    from multiprocessing import get_context

    process = get_context("fork").Process(target=work, args=(load, folder, report))
    code: int = process._bootstrap()  # type: ignore[attr-defined]
    return code


def die_with(parent: int, signum: int = signal.SIGKILL) -> None:
    """Have the kernel send this signal when the parent's thread that forked this process has ended."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


# --- what goes over the socket


def send(control: socket.socket, content: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Raises OSError if nobody is there."""
    data = json.dumps(content).encode()
    length = _LENGTH.pack(len(data))
    socket.send_fds(control, [length], descriptors, socket.MSG_NOSIGNAL)
    control.sendall(data, socket.MSG_NOSIGNAL)


def receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next message and its descriptors; None at the end."""
    length, descriptors, _, _ = socket.recv_fds(control, _LENGTH.size, _GIVEN_MAX)
    if len(length) < _LENGTH.size:
        return None
    data = control.recv(_LENGTH.unpack(length)[0], socket.MSG_WAITALL)
    return json.loads(data), descriptors


def main(folder: str, control: str | None = None) -> None:
    if control is None:
        work(lambda: loaded(folder), folder)
        return
    with socket.socket(fileno=int(control)) as agent:
        agent.set_inheritable(False)
        if folder:
            with suppress(Exception):  # each worker meets it again, and says so
                loaded(folder)
            with suppress(OSError):  # the agent has gone
                send(agent, {})
        serve(agent, lambda: loaded(folder), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
