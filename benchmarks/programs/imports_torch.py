"""A worker whose first line comes after `import torch`. Rank 0 kills itself when it is told to; SIGTERM ends all at once."""

import os
import signal
import sys
import time

import torch  # noqa: F401


def stop(signum: int, frame: object) -> None:
    sys.stdout.write(f"stopped {time.monotonic()}\n")
    sys.stdout.flush()
    os._exit(0)


signal.signal(signal.SIGTERM, stop)
sys.stdout.write(f"up {time.monotonic()}\n")
if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["BENCHMARK_STAGE"], "break")) as told:
        told.read()
    sys.stdout.write(f"death {time.monotonic()}\n")
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)
