"""A worker that computes in chunks of some milliseconds, and writes down when each began and how long it took."""

import os
import sys
import time

import torch  # noqa: F401

with open(os.path.join(os.environ["BENCHMARK_STAGE"], "chunks"), "w") as chunks:
    sys.stdout.write(f"up {time.monotonic()}\n")
    while True:
        began_at, total = time.monotonic(), 0
        for number in range(100_000):
            total += number
        chunks.write(f"{began_at} {time.monotonic() - began_at}\n")
        chunks.flush()
