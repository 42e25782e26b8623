"""drained.py FOLDER: run until this node is drained; then save a checkpoint, say so and be ready to leave, and run on.

The checkpoint of a drained node holds its notice. Workers of other nodes stay until their gate is opened.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import stage

import elastic

folder = Path(sys.argv[1])
stage.tell("restart", os.environ["TORCHELASTIC_RESTART_COUNT"], "of", os.environ["WORLD_SIZE"], "workers")
while not stage.gate_is_open() and not (notice := elastic.notice()):
    time.sleep(0.02)
if not stage.gate_is_open() and notice:
    draft = folder / f"{stage.rank}.draft"
    draft.write_text(json.dumps([notice.source, notice.deadline - notice.stops_at]))
    draft.rename(folder / f"checkpoint-{stage.round}-{stage.rank}.json")
    elastic.ready_to_leave()
    stage.wait_for_signal()
