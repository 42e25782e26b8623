"""scarce.py FAILURES: tell that this worker runs, wait for the gate of its round, fail in the first FAILURES rounds."""

from __future__ import annotations

import sys

import stage

if __name__ == "__main__":
    stage.tell("runs")
    stage.wait_for_gate(stage.round)
    sys.exit(3 if stage.round < int(sys.argv[1]) else 0)
