"""exclusive.py FOLDER ROUNDS: workers and their children hold a lock per generation; one that meets the last one's tells.

In the first ROUNDS rounds rank 0 fails when its round's gate is opened. Rank 1 and all the children ignore SIGTERM or
hold on to their lock until they are killed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys

import stage


def holds(folder: str, round: int, rank: int) -> int:
    """Whether anybody holds the lock of this worker of an earlier round."""
    descriptor = os.open(os.path.join(folder, f"{round}.{rank}"), os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return 1
    finally:
        os.close(descriptor)
    return 0


def main(folder: str, rounds: int) -> None:
    size = int(os.environ["WORLD_SIZE"])
    met = sum(holds(folder, round, rank) for round in range(stage.round) for rank in range(size))
    mine = os.open(os.path.join(folder, f"{stage.round}.{stage.rank}"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if stage.round == rounds:
        stage.tell("last", met)
        return
    if stage.rank == 1:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # its children inherit this too
    subprocess.Popen(["sleep", "1000"], pass_fds=[mine])
    stage.tell("holds", met)
    if stage.rank == 0:
        stage.wait_for_gate(stage.round)
        sys.exit(1)
    stage.wait_for_signal()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
