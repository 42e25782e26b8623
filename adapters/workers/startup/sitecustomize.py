"""Our start-up code: Python runs this module before the program of a worker, or of a standby (elastic_standby.py).

Python imports `sitecustomize` when the interpreter is complete, and before `__main__` begins. In a worker this module asks
for the main thread's stack when a signal comes (faulthandler.register). It goes to a file without a name, whose descriptor
is a high one that no child inherits, so that the program's own descriptors have the numbers that they always have. Then this
module takes itself out of the process.

It is short, because a Python without a cache compiles it at each start. It must not raise, and the program must not find
modules that it did not ask for.
"""

import os
import sys

STACKS = "ELASTIC_STACKS"
"""SIGNAL:DESCRIPTOR:1 in a worker whose stacks are wanted, with 0 for 1 where PYTHONPATH was unset."""
STANDBY = "ELASTIC_STANDBY"
BROKEN = 70
"""The exit code of a process in which our code has failed."""


def begin() -> "BaseException | None":
    """Begin as a worker; return what the sitecustomize that this one hides has raised."""
    signum, number, had_path = map(int, os.environ.pop(STACKS).split(":"))
    rest = os.environ["PYTHONPATH"][len(os.path.dirname(__file__)) + 1 :]
    hide(rest if had_path else None)
    write_stacks_at(signum, number)
    return import_hidden()


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


if __name__ == "sitecustomize":
    try:
        if STANDBY in os.environ:
            import elastic_standby  # type: ignore[import-not-found]

            del sys.modules["elastic_standby"]
            _raised = elastic_standby.stand_by(hide, import_hidden, write_stacks_at)
        else:
            _raised = begin() if STACKS in os.environ else import_hidden()
    except BaseException:  # noqa: BLE001 nothing may reach `site`
        import traceback

        os.write(2, traceback.format_exc().encode())
        os._exit(BROKEN)
    if _raised is not None:
        raise _raised
