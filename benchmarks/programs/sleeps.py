"""A worker that is there and does nothing."""

import os
import sys
import time

sys.stdout.write(f"worker {os.getpid()}\n")
time.sleep(86_400)
