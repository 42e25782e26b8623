"""The check that a program can be executed, made before any worker runs.

The kernel would answer as well, but late and badly: the answer would come out of `setpriv`, in a worker that has
already cost a round, as exit code 127. Here it is one line that names the path, the reason and, where there is one, the
remedy. What is checked is what execvp looks at: the search through the worker's own PATH, the mode, the first bytes.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from ...secret_variables import without_secrets
from ...terminal import why
from ..worker_port import CannotStart

_DEFAULT_PATH = "/bin:/usr/bin"
"""execvp looks here when the environment has no PATH."""
_BINFMT = Path("/proc/sys/fs/binfmt_misc")
"""Handlers registered with the kernel for other formats (wine, qemu, ...)."""
_NO_MODULE, _NO_MAIN = 3, 4
_MISSING = f"""
import importlib.util, sys

def missing(parts):
    for end in range(1, len(parts) + 1):
        spec = importlib.util.find_spec(".".join(parts[:end]))
        if spec is None:
            return {_NO_MODULE} if end < len(parts) else {_NO_MAIN}
        if spec.loader is not None or spec.submodule_search_locations is None:
            return 0
    return 0

try:
    code = missing([*sys.argv[1].split("."), "__main__"])
except BaseException:
    code = 0
sys.exit(code)
"""
"""This program says by its exit code that a module is not there. It imports namespace packages only, and these have no code:
what a package's code finds or does wrong, the worker shows."""
_ASKED_S = 30.0
_FIRST_LINE_MAX = 256
"""The kernel reads so much of a `#!` line."""


def check_program(name: str, path: str | None = None, binfmt: Path = _BINFMT) -> None:
    """Raise CannotStart if execvp could not run `name` with this PATH."""
    found = _find(name, _DEFAULT_PATH if path is None else path)
    _check_mode(found, name)
    _check_format(found, name, binfmt)


def check_script(path: str) -> None:
    """Raise CannotStart if `python path` has nothing to run. A directory or an archive may hold a `__main__.py`; `-` is
    standard input."""
    if path != "-" and not os.path.exists(path):
        raise CannotStart(f"{path}: no such file{_from_here(path)}")


def check_module(name: str, environment: Mapping[str, str]) -> None:
    """Raise CannotStart if `python -m name` has nothing to run with this environment. Python itself is asked before a
    refusal, for the environment may change where it looks. No code of a package runs, so what that alone can tell is left
    to the worker."""
    if _may_be_there(name, environment.get("PYTHONPATH", "")):
        return
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _MISSING, name],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASKED_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return
    if asked.returncode == _NO_MODULE:
        raise CannotStart(f"{name}: no such module{_from_here('.')}, and none is installed")
    if asked.returncode == _NO_MAIN:
        raise CannotStart(f"{name}: a package without a __main__ module, so it cannot be executed")


def _may_be_there(name: str, pythonpath: str) -> bool:
    """Return True if this process finds the module, or a package whose code says what is in it. Nothing is imported."""
    path: Sequence[str] = ["", *filter(None, pythonpath.split(":")), *sys.path]
    try:
        for part in (*name.split("."), "__main__"):
            spec = PathFinder.find_spec(part, path)  # a full name would ask its parent, which is not imported
            if spec is None:
                break
            if not _is_namespace(spec):
                return True
            path = list(spec.submodule_search_locations or ())
        spec = find_spec(name.partition(".")[0])  # asks the finders of editable installs as well
        return spec is not None and not _is_namespace(spec)
    except Exception:  # noqa: BLE001 (a finder is anybody's code)
        return False


def _is_namespace(spec: ModuleSpec) -> bool:
    """Return True for folders without an `__init__.py`: no code can say what else is in them."""
    return spec.loader is None and spec.submodule_search_locations is not None


def check_descriptors(count: int) -> None:
    """Raise CannotStart if this process may open fewer descriptors than this. What the whole host is short of may pass."""
    taken = list[int]()
    try:
        while len(taken) < count:
            taken.append(os.eventfd(0))
    except OSError as error:
        if error.errno != errno.EMFILE:
            return
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        text = f"{why(error)}: the workers take {count} more, {len(taken)} are left (ulimit -n is {limit})"
        raise CannotStart(text) from None
    finally:
        for descriptor in taken:
            os.close(descriptor)


def find_setpriv(path: str | None = None) -> str:
    """The program that ties a worker's death to the agent's."""
    found = shutil.which("setpriv", path=path)
    if found is None:
        raise CannotStart("setpriv: not found in PATH; it is part of util-linux: install that (apt install util-linux)")
    return found


def ignoring(signum: int | None, command: Sequence[str]) -> tuple[str, ...]:
    """Return a command whose process ignores this signal until it handles it; the same command where this host has no env of
    GNU coreutils 8.31 or later. (No process can do that for another one that it executes.)"""
    is_assignment = "=" in command[0]  # for env
    return (*(() if signum is None or is_assignment else _env(signum)), *command)


@cache
def _env(signum: int) -> tuple[str, ...]:
    env = shutil.which("env")
    if env is None:
        return ()
    words = env, f"--ignore-signal={signum}"
    return (
        words if subprocess.run(words, env=without_secrets(), capture_output=True, check=False).returncode == 0 else ()
    )


def _find(name: str, path: str) -> str:
    """The file that execvp would take; one that cannot be executed only if there is no better."""
    if not name:
        raise CannotStart("'': a program's name is empty")
    if "/" in name:
        if not os.path.lexists(name):
            raise CannotStart(f"{name}: no such file{_from_here(name)}")
        return name
    files = [file for file in (os.path.join(place, name) for place in path.split(":")) if os.path.isfile(file)]
    if not files:
        hint = f"; it is in this directory: write ./{name}" if os.path.isfile(name) else ""
        raise CannotStart(f"{name}: not found in PATH{hint}")
    return next((file for file in files if os.access(file, os.X_OK)), files[0])


def _from_here(path: str) -> str:
    try:
        return "" if os.path.isabs(path) else f" in {os.getcwd()}"
    except FileNotFoundError:
        return ": this working directory was removed"


def _check_mode(found: str, name: str) -> None:
    try:
        mode = os.stat(found).st_mode
    except OSError as error:
        raise CannotStart(f"{name}: {why(error)}") from error
    if stat.S_ISDIR(mode):
        raise CannotStart(f"{name}: a directory, not a program")
    if not stat.S_ISREG(mode):
        raise CannotStart(f"{name}: not a regular file")
    if not os.access(found, os.X_OK):
        raise CannotStart(f"{name}: not executable: chmod +x {found}")


def _check_format(found: str, name: str, binfmt: Path) -> None:
    try:
        with open(found, "rb") as program:
            start = program.read(_FIRST_LINE_MAX)
    except PermissionError:
        return  # executable but not readable: only the kernel can tell
    if start.startswith(b"#!"):
        _check_interpreter(start[2:].split(b"\n")[0], name)
    elif not start.startswith(b"\x7fELF") and not _has_handlers(binfmt):
        raise CannotStart(f"{name}: {_wrong_format(start)}")


def _check_interpreter(line: bytes, name: str) -> None:
    words = line.strip(b" \t").replace(b"\t", b" ").split(b" ")
    interpreter = os.fsdecode(words[0])
    if interpreter.endswith("\r"):
        raise CannotStart(f"{name}: its first line ends as on Windows (\\r\\n): dos2unix {name}")
    if not interpreter:
        raise CannotStart(f"{name}: its first line '#!' names no interpreter")
    if not os.path.isfile(interpreter):
        raise CannotStart(f"{name}: its interpreter {interpreter} (first line) does not exist")
    if not os.access(interpreter, os.X_OK):
        raise CannotStart(f"{name}: its interpreter {interpreter} (first line) is not executable")


def _has_handlers(binfmt: Path) -> bool:
    try:
        return bool(set(os.listdir(binfmt)) - {"register", "status"})
    except OSError:
        return False


def _wrong_format(start: bytes) -> str:
    if not start:
        return "an empty file"
    return "neither a binary nor a script: its first line must name the interpreter, like #!/bin/sh"
