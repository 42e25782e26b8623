"""Our start-up code: Python runs this module before the program of a worker, or of a standby (elastic_standby.py).

Python imports `sitecustomize` when the interpreter is complete, and before `__main__` begins. In a worker this module does
two things. It asks for the main thread's stack when a signal comes (faulthandler.register), where that is wanted. And it
reports to the agent, by one packet, that an exception is uncaught (sys.excepthook), or that the interpreter begins to end:
an exit code or an atexit handler may keep the end itself back for long. Both use descriptors of high numbers that no
executed child inherits, so that the program's own have the numbers that they always have. Then this module takes itself out
of the process.

It is short, because a Python without a cache compiles it at each start. It must not raise, and the program must not find
modules that it did not ask for. What is needed only after an exception is in elastic_raise.py.
"""

import os
import sys

TYPE_CHECKING = False  # as type checkers read it; `typing` is not imported here
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType, TracebackType
    from typing import Any

START_UP = "ELASTIC_START_UP"
"""In a worker SIGNAL:STACKS:GIVEN:NUMBER:1. SIGNAL is 0 where no stacks are wanted, GIVEN is 0 where no agent listens, and 0
stands for 1 where PYTHONPATH was unset."""
STANDBY = "ELASTIC_STANDBY"
BROKEN = 70
"""The exit code of a process in which our code has failed."""
TRIES = 3
"""How often the record of an exception is tried."""


def begin() -> "BaseException | None":
    """Begin as a worker; return what the sitecustomize that this one hides has raised."""
    signum, stacks, given, number, had_path = map(int, os.environ.pop(START_UP).split(":"))
    rest = os.environ["PYTHONPATH"][len(os.path.dirname(__file__)) + 1 :]
    hide(rest if had_path else None)
    if signum:
        write_stacks_at(signum, stacks)
    raised = import_hidden()
    if given:
        report_to(given, number)
    return raised


def hide(path: "str | None") -> None:
    """Make PYTHONPATH and sys.path what they are without us."""
    folder = os.path.dirname(__file__)
    sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    if path is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = path


def import_hidden() -> "BaseException | None":
    """Import the sitecustomize that Python would have found without this one; return what it raises."""
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except Exception as error:  # noqa: BLE001 which `site` reports
        return error
    return None


def write_stacks_at(signum: int, number: int) -> None:
    """Have Python write the stack of the thread that takes this signal, also while C code holds its lock. What the host
    refuses is left out. The stacks of other threads are left alone: they run on meanwhile, and one look in some thousands
    would end the process by SIGSEGV."""
    is_there = "faulthandler" in sys.modules
    try:
        import faulthandler

        file = os.memfd_create("elastic-stacks")
        appended = os.open(f"/proc/self/fd/{file}", os.O_WRONLY | os.O_APPEND)  # the agent empties it
        os.dup2(appended, number, inheritable=False)
        os.close(appended)
        os.close(file)
        faulthandler.register(signum, number, all_threads=False)
    except (OSError, ValueError, RuntimeError, ImportError):
        pass
    if not is_there:
        sys.modules.pop("faulthandler", None)


def report_to(given: int, number: int) -> None:
    """Have the main thread report the first of two things over this socket, which gets this number. It has raised an
    exception that nobody catches, or the interpreter begins to end (also by KeyboardInterrupt). A forked child inherits all
    of this and reports nothing. Nor does a program that has taken the number for something else."""
    import _thread
    import time

    folder, error_file = os.path.dirname(__file__), os.environ.get("TORCHELASTIC_ERROR_FILE")
    me, chained = (os.getpid(), _thread.get_ident()), sys.excepthook
    reported: list[str] = []
    if given == number:
        os.set_inheritable(number, False)
    else:
        os.dup2(given, number, inheritable=False)
        os.close(given)
    socket = os.fstat(number)[1:3]

    def is_me() -> bool:
        return not reported and me == (os.getpid(), _thread.get_ident())

    def report(what: str, record: str = "") -> None:
        if is_me():
            reported.append(what)
            try:
                if os.fstat(number)[1:3] == socket:
                    os.write(number, f"{what} {time.monotonic()}\n{record}".encode())
            except OSError:
                pass  # the agent has gone

    def leave_record(error: BaseException, trace: "TracebackType | None") -> str:
        sys.path.insert(0, folder)
        try:
            import elastic_raise  # type: ignore[import-not-found]

            return elastic_raise.leave(error_file, error, trace)  # type: ignore[no-any-return]
        finally:
            sys.path.remove(folder)
            sys.modules.pop("elastic_raise", None)

    def excepthook(kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None") -> None:
        if is_me() and not issubclass(kind, KeyboardInterrupt) and not goes_on(trace):
            record = ""
            for _ in range(TRIES):  # a handler of a signal may raise in here, as DataLoader's does
                try:
                    record = leave_record(error, trace)
                    break
                except BaseException:  # noqa: BLE001 no memory, or no descriptor; the agent is to hear of it all the same
                    continue
            report("raise", record)
        chained(kind, error, trace)

    sys.excepthook = excepthook
    before_shutdown(lambda: report("ending"))


def goes_on(trace: "TracebackType | None") -> bool:
    """Return True if the program goes on after this exception: a console shows it (code.interact), and a frame of the
    traceback or of a module still runs."""
    failed = set()
    while trace is not None:
        failed.add(trace.tb_frame)
        trace = trace.tb_next
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame in failed or frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def before_shutdown(report: "Callable[[], None]") -> None:
    """Call this when the interpreter begins to end, before it waits for threads. A program that never imports `threading`
    waits for none: there it is called after the program's own atexit handlers."""
    is_there = "atexit" in sys.modules
    import atexit

    atexit.register(report)
    if not is_there:
        del sys.modules["atexit"]
    if "threading" in sys.modules:
        before_joins(sys.modules["threading"], report)
    else:
        sys.meta_path.insert(0, UntilThreading(report))


def before_joins(threading: "Any", report: "Callable[[], None]") -> None:
    """Call this before `threading` waits for threads: the interpreter calls its _shutdown first of all when it ends."""
    joins = threading._shutdown

    def _shutdown() -> None:
        report()
        joins()

    threading._shutdown = _shutdown


class UntilThreading:
    """The first finder of modules, until `threading` is imported."""

    def __init__(self, report: "Callable[[], None]") -> None:
        self._report = report

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name != "threading" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        specs: Any = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next(filter(None, specs), None)
        if spec is None or not hasattr(spec.loader, "__dict__"):
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            del loader.exec_module
            execute(module)
            before_joins(module, self._report)

        loader.exec_module = exec_module
        return spec


if __name__ == "sitecustomize":
    try:
        if STANDBY in os.environ:
            import elastic_standby  # type: ignore[import-not-found]

            del sys.modules["elastic_standby"]
            _raised = elastic_standby.stand_by(hide, import_hidden, write_stacks_at, report_to)
        else:
            _raised = begin() if START_UP in os.environ else import_hidden()
    except BaseException:  # noqa: BLE001 nothing may reach `site`
        import traceback

        os.write(2, traceback.format_exc().encode())
        os._exit(BROKEN)
    if _raised is not None:
        raise _raised
