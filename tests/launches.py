"""The real command, watched: what it and its workers say, and how it ends. Every wait is for an event, and is bounded."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import stage
from attrs import define, field, frozen
from processes import standbys_of

ELASTIC = str(Path(sys.executable).with_name("elastic"))
PROGRAMS = Path(__file__).parent / "e2e" / "programs"
TESTS = Path(__file__).parent
TIMEOUT_S = 180.0
"""How long anything may take on a machine that is busy with something else, or stands still for a while."""
MAY_NOT_IDLE = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
"""What is put before a launcher whose standbys a test waits for. Without this capability they import like other processes;
with it they wait for an idle CPU."""


@frozen
class Told:
    """What a worker told by `stage.tell`."""

    round: int
    rank: int
    pid: int
    words: str


_ACCOUNT = re.compile(r"  (this node|all nodes) {5}\d")


@frozen
class Ended:
    """How the command ended. `code` is subprocess's: negative for a signal."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What the launcher said of itself, without the clock, and without where a job of over a minute spent its time: rows
        that appear only if the host stands still for long."""
        lines, is_account = [], False
        for line in (line.partition("elastic  ")[2] or line for line in self.err.splitlines()):
            is_account = bool(_ACCOUNT.match(line)) or (is_account and line.startswith("   "))
            if not is_account:
                lines.append(line)
        return lines


@define
class _Reader:
    """What comes out of a pipe. It is never read to its end: a process that was left behind may hold it open."""

    descriptor: int
    data: bytearray = field(factory=bytearray)

    def read(self) -> None:
        """What is there now, and not what is written meanwhile: others have something to say too."""
        os.set_blocking(self.descriptor, False)
        try:
            self.data += os.read(self.descriptor, fcntl.fcntl(self.descriptor, fcntl.F_GETPIPE_SZ))
        except BlockingIOError:
            pass

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")


class Launch:
    """One `elastic launch` that runs."""

    def __init__(self, command: list[str], environment: Mapping[str, str], folder: Path, stack: ExitStack) -> None:
        os.mkfifo(folder / stage.TOLD)
        told = os.open(folder / stage.TOLD, os.O_RDWR)
        stack.callback(os.close, told)
        self._gate = os.open(folder / stage.GATE, os.O_RDWR | os.O_CREAT)
        stack.callback(os.close, self._gate)
        fcntl.lockf(self._gate, fcntl.LOCK_EX)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, stage.FOLDER: str(folder)},
        )
        stack.enter_context(self.process)
        stack.callback(self.process.kill)
        assert self.process.stdout and self.process.stderr
        self._out = _Reader(self.process.stdout.fileno())
        self._err = _Reader(self.process.stderr.fileno())
        self._told = _Reader(told)
        self._heard = 0
        self._pidfd = os.pidfd_open(self.process.pid)
        stack.callback(os.close, self._pidfd)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        """What was read of stderr."""
        return self._err.text

    def hears(self, count: int, timeout_s: float = TIMEOUT_S) -> list[Told]:
        """The next things that workers tell, by rank."""
        told = self._told
        self._wait(lambda: told.data.count(b"\n") >= self._heard + count, f"{count} more words of workers", timeout_s)
        lines = self._told.text.splitlines()[self._heard : self._heard + count]
        self._heard += count
        return sorted((_told(line) for line in lines), key=lambda told: (told.rank, told.words))

    def says(self, text: str, timeout_s: float = TIMEOUT_S) -> str:
        """Wait until the launcher, or a worker on its stderr, has said this; returns all that was said so far."""
        self._wait(lambda: text in self._err.text, f"{text!r} on stderr", timeout_s)
        return self._err.text

    def says_within(self, text: str, span_s: float) -> bool:
        """Whether it says this in so short a time: for what must not be said."""
        ends_at = time.monotonic() + span_s
        while text not in self._err.text and time.monotonic() < ends_at and not self.has_ended():
            _ready([self._err.descriptor], min(0.1, span_s))
            self._read()
        return text in self._err.text

    def prints(self, text: str, timeout_s: float = TIMEOUT_S) -> str:
        """Wait until a worker has printed this; returns all that was printed so far."""
        self._wait(lambda: text in self._out.text, f"{text!r} on stdout", timeout_s)
        return self._out.text

    def stands_by(self, count: int, beside: Iterable[Told], timeout_s: float = TIMEOUT_S) -> list[int]:
        """Wait until so many standbys are there beside these workers, and some have been ready; return their process ids.

        The launcher may also say that they are ready before the first workers take their places.
        """
        pids = [worker.pid for worker in beside]
        found: list[int] = []

        def has_come() -> bool:
            found[:] = standbys_of(self.pid, *pids)
            return len(found) == count

        self._wait(has_come, f"{count} standbys", timeout_s)
        self.says(" ready, imports took ", timeout_s)
        return found

    def keeps_up(self) -> None:
        """Read what was said so far: nobody may stand still because of a full pipe."""
        self._read()

    def signal(self, signum: int) -> None:
        self.process.send_signal(signum)

    def open_gate(self, number: int = 0) -> None:
        """Let the workers go on that wait for it, now or later."""
        fcntl.lockf(self._gate, fcntl.LOCK_UN, 1, number)

    def ends(self) -> Ended:
        self._wait(self.has_ended, "the end of the launcher")
        code = self.process.wait()
        self._read()
        return Ended(code, self._out.text, self._err.text)

    def _read(self) -> None:
        for reader in (self._out, self._err, self._told):
            reader.read()

    def _wait(self, claim: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
        ends_at = time.monotonic() + timeout_s
        sources = [self._told.descriptor, self._out.descriptor, self._err.descriptor, self._pidfd]
        over = False
        while not self._comes_true(claim):
            if over:
                raise AssertionError(f"waited in vain for {what}; {self.account()}")
            _ready(sources, 0.5)
            over = time.monotonic() > ends_at or self.has_ended()

    def _comes_true(self, claim: Callable[[], bool]) -> bool:
        self._read()
        return claim()

    def has_ended(self) -> bool:
        return bool(_ready([self._pidfd], 0.0))

    def account(self) -> str:
        """All that was said so far, for whoever waits in vain."""
        told, out, err = self._told.text, self._out.text, self._err.text
        return f"the launcher's code is {self.process.poll()}\n--- told\n{told}--- stdout\n{out}--- stderr\n{err}"


def _told(line: str) -> Told:
    round, rank, pid, words = line.split(" ", 3)
    return Told(int(round), int(rank), int(pid), words)


def _ready(descriptors: list[int], timeout_s: float) -> list[tuple[int, int]]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return poll.poll(timeout_s * 1000)


class Launcher:
    """Starts the command, with an environment in which no option is set and the workers' `stage` is found."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._launches: list[Launch] = []
        self._temporary = _short(folder / "tmp", stack)
        self.forged = False
        """The test itself writes into the register what no agent may, so no property can hold over the traces."""

    @property
    def traces(self) -> Path:
        """Where the agents write their traces."""
        return self._folder / "traces"

    def __call__(
        self,
        *arguments: str | Path,
        under: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        traced: bool = True,
    ) -> Launch:
        """`elastic launch` with these arguments; `under` is put before the command, like nohup."""
        trace = [f"--trace={self.traces}/"] if traced else []
        return self.command(*under, ELASTIC, "launch", *trace, *arguments, environment=environment)

    def command(self, *command: str | Path, environment: Mapping[str, str] | None = None) -> Launch:
        """Another launcher, in the same environment."""
        stage_folder = self._folder / f"stage{len(self._launches) + 1}"
        stage_folder.mkdir()
        words = [str(word) for word in command]
        if any("standby" in word for word in words) and _may_drop_capabilities():
            words = [*MAY_NOT_IDLE, *words]
        self._launches.append(Launch(words, {**self.environment, **(environment or {})}, stage_folder, self._stack))
        return self._launches[-1]

    def errors_of_accounts(self) -> list[str]:
        """Return what agents said of an error in the account of their time, but for what their host lacked."""
        lines = [line for launch in self._launches for line in launch.said.splitlines()]
        told = [line for line in lines if "where the time of this node went is not told" in line]
        return [line for line in told if "OSError" not in line]

    def left_in_temporary_directory(self) -> list[str]:
        """Return what launchers have left there that ended by themselves; one that was killed can remove nothing."""
        ended = [launch.process.poll() for launch in self._launches]
        if any(code is None or code < 0 for code in ended):
            return []
        return sorted(path.name for path in (self._folder / "tmp").glob("elastic*"))

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("PET_", "TORCH", "OMP_", "PYTHONUNBUFFERED"))
        }
        return {**kept, "PYTHONPATH": str(TESTS), "TMPDIR": str(self._temporary), "LC_ALL": "C.UTF-8"}


def _short(folder: Path, stack: ExitStack) -> Path:
    """Make the folder; return a path of it that leaves room for a socket's name. Else agents would put their sockets into
    /tmp, where those of other tests are."""
    folder.mkdir()
    link = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="t", dir="/tmp"))) / "t"
    link.symlink_to(folder)
    return link


@cache
def _may_drop_capabilities() -> bool:
    """Return True if the command exists and this process may; a process of no privilege has none to drop."""
    try:
        return subprocess.run([*MAY_NOT_IDLE, "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def launcher(folder: Path) -> Iterator[Launcher]:
    """What it started is killed at the end, if it lives."""
    with ExitStack() as stack:
        yield Launcher(folder, stack)


def after_end_by(signum: signal.Signals) -> set[int]:
    """The codes of a program that ended by a signal: in its own words, or the kernel's."""
    return {128 + signum, -signum}
