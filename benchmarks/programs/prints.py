"""A worker that prints a line and ends."""

import os
import sys

sys.stdout.write(f"worker {os.getpid()}\n")
