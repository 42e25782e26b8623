"""A standby: our start-up code (sitecustomize.py) waits here for a rank, and then lets Python run the program.

A standby is executed like any other worker (`python -u train.py …`) but for two variables: PYTHONPATH begins with this
folder, and ELASTIC_STANDBY has two descriptors. Python imports `sitecustomize` when the interpreter is complete, and
before `__main__` begins. So this module imports what the program will import, tells the agent that it is ready, and waits.
"go" brings the worker's environment and output. Then this module takes itself out of the process and returns. All that
follows is Python's own: `__main__`, sys.path[0], tracebacks, exit codes.

What imports print is kept in files without a name, and comes out first of all at "go". An import spoils the standby if it
raises, or if it asks for a variable of the round (RANK …) and so learns something else than in a worker. The agent is told
and ends it. If the agent has said "go" meanwhile, the process executes the program afresh.

This module must not raise: Python would go on and run the program without a rank. It imports next to nothing, because the
program must not find modules that it did not ask for.

    agent → standby   the plan: a file without a name, marshal; then a packet: the orders (such a file), stdout, stderr and
                      the socket for reports
    standby → agent   packets of words with NUL between: ready SECONDS MODULE · failed MODULE WHY ·
                      asked MODULE NAME BY TAINTED OTHERS
"""

import os
import sys

TYPE_CHECKING = False  # as type checkers read it; `typing` is not imported here
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

VARIABLE = "ELASTIC_STANDBY"
STALE = 75
"""The exit code of a standby that was told to go for an attempt before its own."""
_CONTROL = 1024
"""The socket gets a number below this, as high as can be, so that imports open the numbers that they open in a worker."""
_ENVIRONMENT: type = type(os.environ)


class _Spoilt(Exception):
    """This process must not become a worker by going on."""


def stand_by(
    hide: "Callable[[str | None], None]",
    import_hidden: "Callable[[], BaseException | None]",
    write_stacks_at: "Callable[[int, int], None]",
    report_to: "Callable[[int, int], None]",
) -> "BaseException | None":
    """Wait for "go"; return what the sitecustomize that ours hides has raised."""
    if os.environ[VARIABLE] == "path":
        _tell_path()
    import _socket
    import marshal
    import time

    given, plan_file = map(int, os.environ.pop(VARIABLE).split(":"))
    number = min(os.sysconf("SC_OPEN_MAX"), _CONTROL) - 1
    os.dup2(given, number, inheritable=False)
    os.close(given)
    control = _socket.socket(fileno=number)
    plan = marshal.loads(_contents(plan_file))
    hide(plan["path"])
    raised = import_hidden()
    began_at, holder, spoilt = time.monotonic(), "", False
    try:
        for module, importer, file, line, statement in plan["imports"]:
            _import(plan["of_round"], module, importer, file, line, statement)
            holder = holder or (module if _holds(plan["gpus"]) else "")
        _tell(control, "ready", f"{time.monotonic() - began_at:.3f}", holder)
    except _Spoilt as words:
        spoilt = True
        _tell(control, *words.args)
    orders, streams, *reports = _wait(control)
    if orders["attempt"] < plan["attempt"]:
        os._exit(STALE)
    control.close()
    if "socket" not in sys.modules:
        del sys.modules["_socket"]
    _become(orders, streams, not spoilt)
    signum, stacks, number = orders["start_up"]
    if spoilt:
        _execute_afresh(orders["afresh"], number, *reports)
    if signum:
        write_stacks_at(signum, stacks)
    for given in reports:
        report_to(given, number)
    return raised


def _contents(descriptor: int) -> bytes:
    """Read a file without a name, and close it."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    os.close(descriptor)
    return data


def _tell(control, *words: str) -> None:  # type: ignore[no-untyped-def]
    try:
        control.send("\0".join(words).encode("utf-8", "replace"))
    except OSError:
        pass  # the agent has said "go" already, or has gone


def _import(of_round: "tuple[str, ...]", module: str, importer: str, file: str, line: int, statement: str) -> None:
    """Run one import as its file would, so that a warning names that file and line. Raises _Spoilt."""
    asked: list[tuple[str, list[str]]] = []

    class Watched(_ENVIRONMENT):  # type: ignore[misc]
        def __getitem__(self, name: str) -> str:
            if name in of_round:
                asked.append((name, _importing()))
            return super().__getitem__(name)  # type: ignore[no-any-return]

    before = set(sys.modules)
    os.environ.__class__ = Watched
    try:
        code = compile("\n" * (line - 1) + statement, file, "exec")
        exec(code, {"__name__": importer, "__file__": file})
    except BaseException as error:  # noqa: BLE001 whatever it is, a worker will meet it too
        raise _Spoilt("failed", module, f"{type(error).__name__}: {error}".partition("\n")[0]) from None
    finally:
        os.environ.__class__ = _ENVIRONMENT
    if asked:
        tainted = {name.partition(".")[0] for _, names in asked for name in names}
        found = {name.partition(".")[0] for name in sys.modules.keys() - before}
        others = sorted(filter(_is_found, found - tainted - sys.stdlib_module_names))
        name, (by, *_) = asked[0]
        raise _Spoilt("asked", module, name, by, ",".join(sorted(tainted)), ",".join(others))


def _is_found(name: str) -> bool:
    """Return True if `import` finds this module; __mp_main__ is not found, nor what torch writes itself."""
    return name.isidentifier() and any(finder.find_spec(name, None) for finder in sys.meta_path)


def _importing() -> "list[str]":
    """Return the names of the modules that are being imported, the innermost first."""
    names: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not _import.__code__:  # None: a thread that an import started
        if frame.f_code.co_name == "<module>":
            names.append(frame.f_globals.get("__name__", "?"))
        frame = frame.f_back
    return names[:-1] or names or ["?"]


def _holds(gpus: str) -> bool:
    """Return True if this process has a file open whose name begins so. Where there is no driver nothing is looked up."""
    if not os.path.exists(f"{gpus}ctl"):
        return False
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith(gpus):
                return True
        except OSError:
            continue
    return False


def _wait(control: "Any") -> "Any":
    """Return the orders, the descriptors of the output, and that of the socket for reports, if there is one."""
    import _socket
    import marshal

    size, flags = _socket.CMSG_SPACE(16), _socket.MSG_CMSG_CLOEXEC
    try:
        packet, ancillary, _, _ = control.recvmsg(16, size, flags)
    except ConnectionResetError:  # the agent did not read what it was told; its own packet is still there
        packet, ancillary, _, _ = control.recvmsg(16, size, flags)
    if not packet:
        os._exit(0)  # the agent has gone
    file, stdout, stderr, *reports = memoryview(ancillary[0][2]).cast("i")
    return marshal.loads(_contents(file)), [stdout, stderr], *reports


def _become(orders: dict, streams: "list[int]", says: bool) -> None:  # type: ignore[type-arg]
    """Take the worker's environment, scheduling, CPUs and output. `says`: what imports have printed comes out."""
    os.environ.clear()
    os.environ.update(orders["environment"])
    policy, priority = orders["policy"]
    for task in os.listdir("/proc/self/task"):  # imports may have started threads
        try:
            os.sched_setscheduler(int(task), policy, os.sched_param(priority))
            os.sched_setaffinity(int(task), orders["cpus"])
        except OSError:
            continue  # it has ended; or these CPUs are gone
    for number, stream, name in zip((1, 2), streams, ("stdout", "stderr")):  # noqa: B905
        printed = os.pread(number, os.fstat(number).st_size, 0) if says else b""
        os.dup2(stream, number)
        os.close(stream)
        _begin_anew(getattr(sys, f"__{name}__"), number, name)
        try:
            while printed:
                printed = printed[os.write(number, printed) :]
        except OSError:
            continue  # nobody reads it


def _begin_anew(stream, number: int, name: str) -> None:  # type: ignore[no-untyped-def]
    """Let a stream forget what it knows of its old file: whether one can seek in it. Imports may hold the stream."""
    raw = type(stream.buffer)(number, "wb", closefd=False)
    raw.name = f"<{name}>"
    stream.__init__(raw, stream.encoding, stream.errors, "\n", stream.line_buffering, stream.write_through)
    stream.mode = "w"


def _execute_afresh(start_up: "dict[str, str]", number: int, *reports: int) -> None:
    """Execute the program, as setpriv has executed this process, with our start-up code as a fresh worker has it."""
    import _signal  # type: ignore[import-not-found]

    for given in reports:
        os.dup2(given, number)
    os.environ.update(start_up)
    for ignored in (_signal.SIGPIPE, _signal.SIGXFSZ):  # by Python; who is executed would inherit that
        _signal.signal(ignored, _signal.SIG_DFL)
    os.execvp(sys.orig_argv[0], sys.orig_argv)


def _tell_path() -> None:
    """Tell an agent of another Python where this one finds modules."""
    sys.path.remove(os.path.dirname(__file__))
    os.write(1, b"\0".join(os.fsencode(each) for each in sys.path))
    os._exit(0)
