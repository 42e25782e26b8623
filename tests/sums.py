"""What the workers of `e2e/programs/training.py` sum up, and the checkpoint that they keep: for them and for their tests."""

from __future__ import annotations

import fcntl
import json
import sys
from pathlib import Path
from typing import IO, NamedTuple

ITEMS = 60


def share(step: int, rank: int, size: int) -> int:
    """What one worker adds in one step."""
    return sum((step * 31 + item * 17) % 1009 for item in range(rank, ITEMS, size))


def total(steps: int) -> int:
    """The sum after so many steps, however many workers made them."""
    return sum(share(step, 0, 1) for step in range(steps))


class Checkpoint(NamedTuple):
    """What was summed up in so many steps, and the round in which it was written."""

    round: int
    steps: int
    total: int


def load(path: Path) -> Checkpoint:
    """Not between another's write and its end of the file."""
    with path.open() as file:
        fcntl.lockf(file, fcntl.LOCK_SH)
        return _read(file)


def save(path: Path, now: Checkpoint) -> None:
    """Unless a later round has written: then this world is an old one, and its worker ends."""
    with path.open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        if (stands := _read(file)).round > now.round:
            sys.exit(f"round {stands.round} has written, this is {now.round}")
        file.seek(0)
        file.write(json.dumps(now))
        file.truncate()


def _read(file: IO[str]) -> Checkpoint:
    file.seek(0)
    data = file.read()
    return Checkpoint(*json.loads(data)) if data else Checkpoint(-1, 0, 0)


def shared(path: Path) -> Path:
    """Where a worker tells that an older one of its node still lives."""
    return path.with_name(f"{path.name}.shared")
