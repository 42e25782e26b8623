"""A program of its own: a worker that calls a Python function, or a server that forks such workers.

    python -u -P function.py FOLDER             calls it (start method `spawn`)
    python -u -P function.py FOLDER SOCKET      forks a worker for each request (start method `forkserver`)

FOLDER has the file `call`: what multiprocessing's own children are prepared with, so that functions of the parent's main
module are found, and the pickled call. What the function returned is left there too, in a file for each round and rank. An
uncaught exception is left in the error file, in torch's format, unless somebody (torch's @record) has done so already.

With the start method `fork` the server is forked from the parent, while that has no thread of ours, and holds the function
in memory. It has one thread, so that its workers are forked safely, and it reaps a worker only when it is told to: until
then the worker's number is nobody else's. Requests and answers are JSON behind its length; descriptors travel beside that.
"""

from __future__ import annotations

import json
import os
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
NAMES = {1: "stdout", 2: "stderr"}


class Call(NamedTuple):
    """A function and what it is given."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]


def value_file(folder: str, round: int, rank: int) -> Path:
    return Path(folder, f"{round}.{rank}")


# --- a worker


def work(load: Callable[[], Call], folder: str) -> None:
    """Call it, and leave its value or its exception behind. `sys.exit(0)` is a value of None, as it is for torch."""
    import faulthandler

    faulthandler.enable(2)
    with _told_if_it_fails():
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
def _told_if_it_fails() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if path and not os.path.exists(path):
            with suppress(OSError):
                Path(path).write_text(_words(error))
        raise


def _words(error: Exception) -> str:
    import time
    from traceback import format_exception

    trace = error.__traceback__
    while trace and trace.tb_next and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next  # it begins with what was called
    callstack = "".join(format_exception(error.with_traceback(trace)))
    extra = {"py_callstack": callstack, "timestamp": str(int(time.time()))}
    return json.dumps({"message": {"message": f"{type(error).__name__}: {text_of(error)}", "extraInfo": extra}})


def text_of(value: object) -> str:
    """Return a value as text, else its representation, else nothing."""
    for says in (str, repr):
        with suppress(Exception):
            return says(value)
    return ""


# --- the server


def serve(control: socket.socket, load: Callable[[], Call], folder: str) -> None:
    """Fork and reap workers as requested, until the agent has gone; then kill all their descendants, whatever they hide:
    the kernel gives this process their orphans."""
    server, before = os.getpid(), signal.getsignal(signal.SIGTERM)
    workers: set[int] = set()

    def end(signum: int, frame: object) -> None:  # the agent's thread has ended
        if os.getpid() == server:
            _kill_descendants()
        os._exit(128 + signum)

    signal.signal(signal.SIGTERM, end)
    for signum in (signal.SIGUSR1, signal.SIGUSR2):  # a scheduler sends them to all processes; they are for the agent
        if signal.getsignal(signum) is signal.SIG_DFL:
            signal.signal(signum, signal.SIG_IGN)
    _adopt_orphans()
    with suppress(OSError):
        while request := receive(control):
            content, descriptors = request
            if "reap" in content:
                ended = _reaped(content["reap"], content["wait"])
                if ended:
                    workers.discard(content["reap"])
                send(control, ended)
                continue
            _reap_orphans(workers)
            answer = _forked(content, descriptors, control, load, folder, before)
            workers.add(answer.get("pid", 0))
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


def _reap_orphans(workers: set[int]) -> None:
    """Reap the dead that this process has adopted. The agent asks for the workers."""
    with suppress(OSError):  # no descriptor for now: at the next request
        for pid in set(_children()) - workers:
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


def _reaped(pid: int, wait: bool) -> Mapping[str, Any]:
    """Return how the worker ended; nothing if it lives."""
    end = os.waitid(os.P_PID, pid, os.WEXITED | (0 if wait else os.WNOHANG))
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
                _settle(content, descriptors, server)
                os.close(tell)
                code = _bootstrapped(load, folder)
            finally:
                os._exit(code)
        os.close(tell)
        os.read(ready, 1)  # its end: the child has closed it, or is dead
        return {"pid": pid}
    finally:
        for descriptor in (ready, *descriptors):
            os.close(descriptor)


def _settle(content: Mapping[str, Any], descriptors: Sequence[int], server: int) -> None:
    os.setsid()
    die_with(server)
    os.sched_setaffinity(0, content["cpus"])
    for number, descriptor in zip(content["streams"], descriptors, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
        setattr(sys, NAMES[number], os.fdopen(number, "w", buffering=1, closefd=False))  # whatever the parent has there
    os.environ.clear()
    os.environ.update(content["environment"])


def _bootstrapped(load: Callable[[], Call], folder: str) -> int:
    """Run the call as multiprocessing runs a forked child: with finalizers, joined threads and flushed streams."""
    from multiprocessing import get_context

    process = get_context("fork").Process(target=work, args=(load, folder))
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
    length, descriptors, _, _ = socket.recv_fds(control, _LENGTH.size, 2)
    if len(length) < _LENGTH.size:
        return None
    data = control.recv(_LENGTH.unpack(length)[0], socket.MSG_WAITALL)
    return json.loads(data), descriptors


def main(folder: str, control: str | None = None) -> None:
    if control is None:
        work(lambda: loaded(folder), folder)
        return
    with suppress(Exception):  # each worker meets it again, and says so
        loaded(folder)
    with socket.socket(fileno=int(control)) as agent:
        serve(agent, lambda: loaded(folder), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
