"""What the tests of real processes ask of the kernel."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

TIMEOUT_S = 90.0
PAUSE_MAX_MS = 30.0
"""The longest pause between two looks: some read all of /proc, on cores that what they wait for needs."""


@contextmanager
def cut_name() -> Iterator[None]:
    """Name this process as the kernel shows a name that it cuts at 15 bytes, in the middle of a character."""
    name = Path("/proc/self/comm")
    kept = name.read_bytes()
    name.write_bytes(b"worker-of-ann-\xc3")
    try:
        yield
    finally:
        name.write_bytes(kept)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return False
    return state not in "ZX"


def children_of(pid: int) -> list[int]:
    lists = [_read(task / "children") for task in Path(f"/proc/{pid}/task").iterdir()]
    return [int(child) for each in lists for child in each.split()]


def _children_of_if_there(pid: int) -> list[int]:
    try:
        return children_of(pid)
    except OSError:
        return []


def standbys_of(agent: int, *workers: int) -> list[int]:
    """The processes that wait, or import, beside these workers of an agent. Beside code of others a server executes them."""
    own = set(children_of(agent)) - set(workers)
    others = own.union(*map(_children_of_if_there, own)) - set(workers)
    return [pid for pid in others if b"\0ELASTIC_STANDBY=" in b"\0" + _read(Path(f"/proc/{pid}/environ"))]


def command_of(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/cmdline")).decode()


def monitor_of(pid: int) -> int | None:
    """The monitor process of a wrapped process, once it has been given its charge and looks: with threads of its own."""
    begun = (child for child in children_of(pid) if "inprocess.beside.monitor" in command_of(child))
    return next((child for child in begun if b"Threads:\t1\n" not in _read(Path(f"/proc/{child}/status"))), None)


def ignored_by(pid: int) -> set[int]:
    """The signals that a process ignores."""
    mask = int(Path(f"/proc/{pid}/status").read_text().partition("SigIgn:")[2].split()[0], 16)
    return {signum for signum in range(1, 65) if mask >> signum - 1 & 1}


def _read(file: Path) -> bytes:
    """Nothing of what is gone."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def held_by(pid: int) -> tuple[int, int, int]:
    """Descriptors, threads, and kilobytes of memory of its own."""
    process = Path(f"/proc/{pid}")
    descriptors, threads = (len(list((process / each).iterdir())) for each in ("fd", "task"))
    rollup = (process / "smaps_rollup").read_text().splitlines()
    own = sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Dirty:", "Private_Clean:")))
    return descriptors, threads, own


def signal_another_thread(pid: int, signum: signal.Signals) -> None:
    """Give the signal to a thread that is not the main one, whose wait it does not end."""
    (thread, *_) = (int(task.name) for task in Path(f"/proc/{pid}/task").iterdir() if task.name != str(pid))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.tgkill(pid, thread, int(signum)) == 0, os.strerror(ctypes.get_errno())


def is_stopped(pid: int) -> bool:
    """Every thread of it: a SIGSTOP takes its time."""
    stats = [_read(task / "stat").rpartition(b") ")[2] for task in Path(f"/proc/{pid}/task").iterdir()]
    return {stat[:1] for stat in stats if stat} == {b"T"}


def dies(pid: int, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether the process dies in good time. Needs no parenthood."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(pidfd)


def comes_true(claim: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> bool:
    """For what the kernel tells no event of, like another process's signal mask. Once is enough: it may be false again."""
    end, pause_ms = time.monotonic() + timeout_s, 2.0
    while not (true := claim()) and time.monotonic() < end:
        select.poll().poll(pause_ms)
        pause_ms = min(pause_ms * 1.1, PAUSE_MAX_MS)
    return true


@contextmanager
def unloadable(*names: str) -> Iterator[None]:
    """Meanwhile none of these modules can be imported, as on a host that has no descriptor left."""
    packages = [(sys.modules[package], attribute) for package, _, attribute in (name.rpartition(".") for name in names)]
    loaded = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    known = [(package, attribute, vars(package).pop(attribute, None)) for package, attribute in packages]
    finder = _Exhausted(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(loaded)
        for package, attribute, module in known:
            if module is not None:
                setattr(package, attribute, module)


@frozen
class _Exhausted:
    """Finds these modules, and cannot open their files."""

    names: tuple[str, ...]

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self.names:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@contextmanager
def no_thread_left() -> Iterator[None]:
    """A stack that no address space holds makes each start of a thread fail as it does at a limit of threads."""
    before = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(before)
