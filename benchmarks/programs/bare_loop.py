"""The floor: the least that a launcher in Python does. `python bare_loop.py PROGRAM` runs two workers; when one fails, it
stops the other and starts both again, once.
"""

import os
import subprocess
import sys

WORKERS = 2


def start(restarts: int) -> list[subprocess.Popen[bytes]]:
    command = [sys.executable, "-u", sys.argv[1]]
    environment = {**os.environ, "TORCHELASTIC_RESTART_COUNT": str(restarts)}
    return [subprocess.Popen(command, env={**environment, "RANK": str(rank)}) for rank in range(WORKERS)]


for restarts in range(2):
    workers = start(restarts)
    left = WORKERS
    while left:
        _, status = os.wait()
        left -= 1
        if status:
            break
    else:
        sys.exit(0)
    for worker in workers:
        if worker.poll() is None:
            worker.terminate()
    for worker in workers:
        worker.wait()
sys.exit(1)
