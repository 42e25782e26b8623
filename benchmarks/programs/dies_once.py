"""A worker whose rank 0 kills itself half a second into the first round; the next round prints its lines and ends."""

import os
import sys
import time

SIGKILL = 9  # `import signal` would be a third of what this program takes to start

round = os.environ["TORCHELASTIC_RESTART_COUNT"]
sys.stdout.write(f"round {round}\n")
if round == "0":
    if os.environ["RANK"] == "0":
        time.sleep(0.4 + 0.2 * os.urandom(1)[0] / 256)  # in step with no poll of the launcher
        sys.stdout.write(f"death {time.monotonic()}\n")
        os.kill(os.getpid(), SIGKILL)
    time.sleep(600)
