"""again_ready.py FOLDER: rank 0 is ready to leave, and fails. Started again, it saves once more when rank 1 is ready, too.

Each rank tells "ready" when it has said so. The one that was started again takes its time before it has saved.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import stage

import elastic

SAVING_S = 0.5
folder = Path(sys.argv[1])
again, back, other = folder / "again", folder / "back", folder / "other"
stage.tell("again" if again.exists() else "begins")
if stage.rank == 0 and again.exists():
    back.touch()
while not elastic.notice():
    time.sleep(0.01)
if stage.rank == 1:
    while not back.exists():  # else the node might leave before the agent has heard of the end of rank 0
        time.sleep(0.01)
elif again.exists():
    while not other.exists():
        time.sleep(0.01)
    time.sleep(SAVING_S)
    (folder / "saved").touch()
elastic.ready_to_leave()
stage.tell("ready")
if stage.rank == 1:
    other.touch()
elif not again.exists():
    again.touch()
    sys.exit(1)
stage.wait_for_signal()
