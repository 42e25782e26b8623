"""A worker that ends half a second later, at a time that no poll of its launcher is in step with, and says when."""

import os
import sys
import time

time.sleep(0.4 + 0.2 * os.urandom(1)[0] / 256)
sys.stdout.write(f"end {time.monotonic()}\n")
