"""forges.py TEXT: tell that it runs, then wait for this node's gate and succeed; or fail with TEXT, when told so.

Gate 0 ends the program well. Gate 1, opened first, makes the worker of round 0 fail with an error file like torch's @record.
"""

from __future__ import annotations

import json
import os
import sys
import time

import stage

stage.tell("restart", os.environ["TORCHELASTIC_RESTART_COUNT"], "of", os.environ["WORLD_SIZE"], "workers")
while not stage.gate_is_open():
    if stage.round == 0 and stage.gate_is_open(1):
        callstack = f"Traceback (most recent call last):\nRuntimeError: {sys.argv[1]}\n"
        told = {"message": f"RuntimeError: {sys.argv[1]}", "extraInfo": {"py_callstack": callstack, "timestamp": "1"}}
        with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
            json.dump({"message": told}, file)
        sys.exit(1)
    time.sleep(0.02)
