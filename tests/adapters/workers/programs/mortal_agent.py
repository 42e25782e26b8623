"""A small agent, to be killed: mortal_agent.py HOW COMMAND..., which starts two workers of that command.

HOW is `wait` (say "started", then wait), `die` (SIGKILL to itself as soon as start returned) or a number: SIGALRM, which
nobody handles, ends it so many microseconds after start was called.
"""

from __future__ import annotations

import os
import signal
import sys

from elastic.adapters.disk import Disk
from elastic.adapters.workers.child_processes import SubprocessWorkers
from elastic.adapters.workers.worker_port import WorkerSpec


def main(how: str, *command: str) -> None:
    workers = SubprocessWorkers(lambda local_rank, pid: None, Disk())
    specs = [WorkerSpec(local_rank, command, dict(os.environ)) for local_rank in range(2)]
    if how.isdigit():
        signal.setitimer(signal.ITIMER_REAL, int(how) / 1e6)
    workers.start(specs)
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdout.write("started\n")  # in one write, whatever the buffering: others write to this pipe too
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
