"""Prints all that a program can find out about its process and that must not depend on how the worker was made."""

import atexit
import ctypes
import faulthandler
import gc
import importlib.util
import json
import locale
import logging
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import threading
import traceback
import warnings
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

CHANGING = ("ELASTIC_AGENT",)
"""The agents of the two workers differ in it."""


class Mine:
    """Pickled as `__main__.Mine`."""


def child(tell: "Connection[object, object]") -> None:
    tell.send((os.environ["RANK"], sys.argv, sorted(set(sys.path)), __name__, os.environ.get("PYTHONPATH")))


def of_child(method: str) -> object:
    context: Any = multiprocessing.get_context(method)
    hear, tell = context.Pipe(False)
    process = context.Process(target=child, args=(tell,))
    process.start()
    tell.close()
    found = hear.recv()
    process.join()
    return *found, process.exitcode


def stream(each: Any) -> object:
    names = ("encoding", "errors", "line_buffering", "write_through", "name", "mode", "newlines", "closed")
    return (
        [repr(getattr(each, name)) for name in names],
        [each.isatty(), each.seekable(), each.fileno()],
        [type(each.buffer).__name__, getattr(each.buffer, "name", None), getattr(each.buffer, "mode", None)],
    )


def of_main() -> object:
    main = vars(sys.modules["__main__"])
    names = ("__name__", "__file__", "__package__", "__cached__", "__doc__")
    return {
        "names": sorted(main),
        "values": {name: repr(main.get(name)) for name in names},
        "loader": type(main["__loader__"]).__name__,
        "spec": repr(main["__spec__"] and (main["__spec__"].name, main["__spec__"].origin)),
        "itself": sys.modules["__main__"] is import_module("__main__") and main is globals(),
        "builtins": type(main["__builtins__"]).__name__,
    }


def of_trace() -> str:
    def fails() -> None:
        raise ValueError("seen")

    try:
        fails()
    except ValueError:
        return traceback.format_exc() + "".join(traceback.format_stack())
    return ""


def contents(file: str) -> str:
    with open(file) as opened:
        return opened.read()


def of_kernel() -> object:
    libc, pdeathsig = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(2, ctypes.byref(pdeathsig))
    descriptors = {}
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        if not os.path.exists(f"/proc/self/fd/{name}"):
            continue  # that of the listing
        with open(f"/proc/self/fdinfo/{name}") as info:
            descriptors[name] = info.read().split("flags:")[1].split()[0]
    with open("/proc/self/cmdline") as cmdline, open("/proc/self/status") as status:
        kept = (
            "Name",
            "Umask",
            "SigQ",
            "SigPnd",
            "ShdPnd",
            "SigBlk",
            "SigIgn",
            "SigCgt",
            "Threads",
            "Seccomp",
            "Groups",
        )
        lines = [
            line for line in status if line.partition(":")[0] in {*kept, "Cpus_allowed_list", "NoNewPrivs"} - {"SigQ"}
        ]
        return {
            "command": cmdline.read(),
            "status": lines,
            "pdeathsig": pdeathsig.value,
            "session": os.getsid(0) == os.getpgid(0) == os.getpid(),
            "nice": os.nice(0),
            "policy": os.sched_getscheduler(0),
            "limits": [resource.getrlimit(each) for each in range(16)],
            "descriptors": list(descriptors.items()),
            "streams": [os.readlink(f"/proc/self/fd/{number}").split("/")[-1] for number in (1, 2)],
            "cwd": os.getcwd(),
            "stdin": os.readlink("/proc/self/fd/0"),
            "oom": contents("/proc/self/oom_score_adj"),
            "cgroup": contents("/proc/self/cgroup"),
        }


def found() -> dict[str, object]:
    kernel = of_kernel()
    before = sorted(sys.modules)
    unsearched = {sys.path[0]} if __name__ == "__main__" else set(sys.path)  # where no import had to be looked for
    return {
        "kernel": kernel,
        "modules": before,
        "main": of_main(),
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "path": sys.path,
        "path_cache": sorted(set(sys.path_importer_cache) - unsearched),
        "meta_path": [getattr(each, "__name__", type(each).__name__) for each in sys.meta_path],
        "hooks": [len(sys.path_hooks), sys.displayhook is sys.__displayhook__],
        "ours": [
            sys.excepthook is sys.__excepthook__,
            threading._shutdown.__qualname__,  # type: ignore[attr-defined]
            atexit._ncallbacks(),
        ],
        "flags": [str(sys.flags), sys.warnoptions, repr(sys._xoptions), sys.dont_write_bytecode, sys.executable],
        "environment": [(name, text) for name, text in os.environ.items() if name not in CHANGING],
        "environment_type": type(os.environ).__name__,
        "getenv": [ctypes_getenv("RANK"), ctypes_getenv("PYTHONPATH"), ctypes_getenv("ELASTIC_STANDBY")],
        "streams": [stream(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
        "same": [sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
        "signals": [repr(signal.getsignal(each)) for each in sorted(signal.valid_signals())],
        "threads": [threading.current_thread() is threading.main_thread(), threading.active_count()],
        "main_thread": threading.main_thread().native_id == os.getpid(),
        "traced": [sys.gettrace(), sys.getprofile(), faulthandler.is_enabled(), sys.getswitchinterval()],
        "excepthook": threading.excepthook is threading.__excepthook__,
        "logging": [logging.root.level, logging.root.handlers, sorted(logging.root.manager.loggerDict)],
        "process": [multiprocessing.current_process().name, multiprocessing.parent_process()],
        "warnings": [repr(each) for each in warnings.filters],
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), sys.getrecursionlimit()],
        "trace": of_trace(),
        "pickle": type(pickle.loads(pickle.dumps(Mine()))) is Mine,
        "sitecustomize": [importlib.util.find_spec("sitecustomize") is None, "sitecustomize" in sys.modules],
        "fork": of_child("fork"),
        "spawn": of_child("spawn"),
        "forkserver": of_child("forkserver"),
    }


def ctypes_getenv(name: str) -> str | None:
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    text: bytes | None = libc.getenv(name.encode())
    return text.decode() if text is not None else None


def main() -> None:
    atexit.register(print, "at exit")
    warnings.warn("of the program", DeprecationWarning, stacklevel=1)
    print(json.dumps(found(), indent=1))
    sys.stdout.write("no line end")
    sys.stderr.write("last words\n")
    sys.exit(7)


if __name__ == "__main__":
    main()
