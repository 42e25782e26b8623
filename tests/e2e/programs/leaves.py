"""leaves.py obeys|ignores: start a process in this group that waits for the gate and then tells, and end with 0. Rank 1
fails when gate 5 opens."""

from __future__ import annotations

import signal
import subprocess
import sys

import stage

if sys.argv[1] == "child":
    if sys.argv[2] == "ignores":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stage.tell("runs on")
    stage.wait_for_gate(stage.rank)
    stage.tell("uploaded")
elif stage.rank == 1:
    stage.wait_for_gate(5)
    sys.exit(1)
else:
    subprocess.Popen([sys.executable, __file__, "child", sys.argv[1]])
    stage.tell("ends")
