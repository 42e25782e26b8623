"""Restarts in a row in one process: none is doubled, nothing is left behind. `make soak` does 10,000 of them."""

from __future__ import annotations

import os

from launches import PROGRAMS, Launcher

COUNT = int(os.environ.get("ELASTIC_RESTARTS", "60"))
EVERY = min(100, COUNT // 3)
PROGRAM = PROGRAMS / "many_restarts.py"
GROWTH_KIB = 8_192
"""What the register's caches and the history of iterations may come to; a training process has a hundred times that."""


def test_restart_after_restart_leaves_nothing_behind(launch: Launcher) -> None:
    """What is held after the first iterations is what is held at the end."""
    options = ("--restart-scope=rank", "--nproc-per-node=2")
    running = launch(*options, PROGRAM, str(COUNT), str(EVERY), traced=False)
    held: dict[int, list[list[int]]] = {0: [], 1: []}
    returned: list[str] = []
    while len(returned) < 2:
        (told,) = running.hears(1)
        what, *words = told.words.split()
        if what == "holds":
            held[told.rank].append([int(word) for word in words])
        else:
            returned.append(told.words)
    for _, early, *_, late in held.values():
        assert late[0] <= early[0] and late[1] <= early[1], "more threads or descriptors"
        assert late[2] - early[2] < GROWTH_KIB
    assert returned == [f"returned {COUNT} True"] * 2
    assert running.ends().code == 0
