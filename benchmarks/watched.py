"""One command line under one launcher, watched from outside until all its agents have ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen
from likened import End, Seen, seen, told
from measuring import BIN, HERE, MARK

from elastic.adapters.rendezvous.reserved_ports import Reservation

sys.path.append(str(HERE.parent / "tests"))
from processes import dies  # as the tests see that a process dies

TELL = HERE / "programs" / "tell_all.py"
TIMEOUT_S = 600.0
"""A launcher that has not ended by then is taken for one that waits."""
LOOK_S = 0.02
SETTLE_S = 10.0
"""How long all that a launcher has left may take to end by itself."""
LAUNCHERS: Mapping[str, tuple[str, ...]] = {
    "torchrun": (str(BIN / "torchrun"),),
    "elastic": (str(BIN / "elastic"), "launch"),
}
KEPT = ("PATH", "HOME", "LANG", "USER")


@frozen
class Line:
    """One command line. `agents` has what each of several agents adds to it; `signal` is sent to the first when so many
    `workers` have told. When one agent has ended, however late that was, the others have `patience_s` left."""

    run: str
    because: tuple[str, ...] = field(default=(), converter=tuple)
    env: Mapping[str, str] = field(factory=dict)
    agents: tuple[str, ...] = field(default=("",), converter=tuple)
    signal: str = ""
    workers: int = 1
    quick: bool = False
    patience_s: float = TIMEOUT_S

    @property
    def text(self) -> str:
        """As people read it."""
        words = [*(f"{name}={value}" for name, value in self.env.items()), self.run.replace("{tell}", "train.py")]
        agents = [f"({' | '.join(each or '·' for each in self.agents)})"] if len(self.agents) > 1 else []
        return " ".join([*agents, *words, *([f"⟵ {self.signal}"] if self.signal else [])])


def watch(launcher: str, line: Line, folder: Path) -> Seen:
    """Run it in this empty folder. Nothing that it started lives afterwards."""
    (folder / "told").mkdir()
    (folder / "tmp").mkdir()
    with Reservation("localhost") as reserved:  # bound but not listening, so that nobody else is handed its port
        return _watched(launcher, line, folder, str(reserved.endpoint.port))


def _watched(launcher: str, line: Line, folder: Path, port: str) -> Seen:
    mark = {"PARITY_FOLDER": str(folder / "told")}
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    env = {**kept, **MARK, **mark, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(TELL.parent), **line.env}
    places = {
        "tell": str(TELL),
        "python": sys.executable,
        "folder": str(folder),
        "logs": str(folder / "logs"),
        "port": port,
    }
    commands = [
        [*LAUNCHERS[launcher], *(word.format_map(places) for word in f"{each} {line.run}".split())]
        for each in line.agents
    ]
    with _nothing_left(mark):
        ends = _run(commands, line, env, folder)
        settled_at = time.monotonic() + SETTLE_S
        left = [pid for pid in _carriers(mark) if not dies(pid, max(settled_at - time.monotonic(), 0.0))]
        return {**seen(ends, folder, env, port), "left alive": str(len(left))}


def _run(commands: Sequence[Sequence[str]], line: Line, env: Mapping[str, str], folder: Path) -> list[End]:
    agents = []
    for number, command in enumerate(commands):
        with open(folder / f"out{number}", "wb") as out, open(folder / f"err{number}", "wb") as err:
            agents.append(
                subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder)
            )
    ends_at = time.monotonic() + TIMEOUT_S
    if line.signal:
        while len(told(folder)) < line.workers and agents[0].poll() is None and time.monotonic() < ends_at:
            time.sleep(LOOK_S)
        agents[0].send_signal(signal.Signals[line.signal])
    while all(agent.poll() is None for agent in agents) and time.monotonic() < ends_at:
        time.sleep(LOOK_S)
    ends_at = time.monotonic() + line.patience_s
    codes = [_code(agent, ends_at) for agent in agents]
    for agent in agents:
        agent.kill()
        agent.wait()
    return [End(code, *_written(folder, number)) for number, code in enumerate(codes)]


def _code(agent: subprocess.Popen[bytes], ends_at: float) -> str:
    try:
        return str(agent.wait(max(ends_at - time.monotonic(), 0.1)))
    except subprocess.TimeoutExpired:
        return "waits"


def _written(folder: Path, number: int) -> tuple[str, str]:
    """On stdout and stderr."""
    out, err = ((folder / f"{name}{number}").read_text(errors="replace") for name in ("out", "err"))
    return out, err


@contextmanager
def _nothing_left(mark: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    finally:
        for pid in _carriers(mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _carriers(mark: Mapping[str, str]) -> list[int]:
    """The processes that were executed with it in their environment."""
    entry, found = "=".join(*mark.items()).encode(), []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and entry in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            pass  # gone, or another user's
    return found
