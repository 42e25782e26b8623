"""What the workers of tests/api call: functions of a module, as a process that was started anew can import them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import stage
from attrs import frozen
from processes import comes_true, ignored_by


@frozen
class Place:
    rank: int
    word: str
    pid: int


def place(word: str, *, again: str = "") -> Place:
    return Place(int(os.environ["RANK"]), word + again, os.getpid())


def round() -> int:
    """Rank 1 fails in round 0."""
    if (os.environ["RANK"], os.environ["ELASTIC_ROUND"]) == ("1", "0"):
        raise ValueError("not yet")
    return int(os.environ["ELASTIC_ROUND"])


def ignored() -> tuple[set[int], set[int]]:
    """Return the signals that this worker ignores, and those of the process that forked it."""
    return ignored_by(os.getpid()), ignored_by(os.getppid())


def fail(text: str) -> None:
    """Rank 1 does, the others wait to be stopped."""
    if os.environ["RANK"] == "1":
        raise KeyError(text)
    stage.wait_for_signal()


def fail_under_torch_s_record() -> None:
    """As programs do that were written for torchrun."""
    from torch.distributed.elastic.multiprocessing.errors import record

    def train() -> None:
        raise RuntimeError("recorded")

    record(train)()


class Awkward:
    """Can be pickled, but made again only by two arguments."""

    def __init__(self, one: int, two: int) -> None:
        self.both = one, two

    def __reduce__(self) -> tuple[object, ...]:
        return Awkward, (1,)


def return_or_not(rank_1: str) -> object:
    """Rank 1 returns what no one can read, or ends without a word."""
    if os.environ["RANK"] != "1":
        return "kept"
    if rank_1 == "ends":
        os._exit(0)
    return Awkward(1, 2)


def names(*, function: str, start_method: str, self: str, entrypoint: str) -> str:
    return f"{function} {start_method} {self} {entrypoint}"


def wait() -> None:
    stage.wait_for_signal()


def end(code: int) -> None:
    sys.exit(code)


def end_again(started: Path) -> None:
    """Exit with 11 at the first start, 12 at the second, and so on; `started` is a file that counts them."""
    with started.open("a") as file:
        file.write("x")
    sys.exit(10 + started.stat().st_size)


def be_killed(signum: int) -> NoReturn:
    os.kill(os.getpid(), signum)
    stage.wait_for_signal()


def many(size: int) -> bytes:
    return bytes(size)


def unpicklable() -> object:
    return sys.stdout


def stop(launcher: int) -> NoReturn:
    """Tell the launcher to stop, and end in order when told so oneself."""
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(0))
    os.kill(launcher, signal.SIGTERM)
    stage.wait_for_signal()


def kill_the_server(trace: str) -> str:
    """In round 0, what has forked this worker, which dies with it; once the agent's trace says that it was started."""
    if os.environ["ELASTIC_ROUND"] == "0":
        assert comes_true(lambda: f'"pids":[{os.getpid()}]' in Path(trace).read_text())
        os.kill(os.getppid(), signal.SIGKILL)
        stage.wait_for_signal()
    return "again"


def speak(text: str) -> None:
    """By Python, and by a child."""
    print(text, flush=True)
    subprocess.run(["sh", "-c", 'echo "$0" >&2', text], check=True)
