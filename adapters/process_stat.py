"""The fields of one process or thread in the kernel's file `stat`, behind the name, which may hold any byte."""

from __future__ import annotations

from os import PathLike

DEAD = (b"Z", b"X", b"x")
"""The states of a process that is dead: not reaped yet, or just being reaped."""


def stat(of: int | PathLike[str]) -> list[bytes]:
    """Return the fields of a process, or of the one that has this folder, from the third one on, which is its state. Raises
    OSError if it is gone."""
    folder = f"/proc/{of}" if isinstance(of, int) else of
    with open(f"{folder}/stat", "rb", buffering=0) as file:
        return file.readall().rpartition(b")")[2].split()
