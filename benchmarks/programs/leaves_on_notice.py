"""A worker whose first line comes after `import torch`, and which is ready to leave as soon as its node is drained."""

import os
import signal
import sys
import time

import torch  # noqa: F401

import elastic


def stop(signum: int, frame: object) -> None:
    sys.stdout.write(f"stopped {time.monotonic()}\n")
    sys.stdout.flush()
    os._exit(0)


signal.signal(signal.SIGTERM, stop)
sys.stdout.write(f"up {time.monotonic()}\n")
sys.stdout.flush()
while not elastic.notice():
    time.sleep(0.01)
elastic.ready_to_leave()
time.sleep(600)
