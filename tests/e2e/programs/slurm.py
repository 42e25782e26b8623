"""Tell in `told` who runs where, and go on until the file `go` is there. A drained node saves, and is ready to leave.

With an argument the first host of rank 0 writes its name into `bad`, and each worker on it fails.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import elastic

names = ("TORCHELASTIC_RUN_ID", "ELASTIC_ROUND", "RANK", "WORLD_SIZE", "SLURMD_NODENAME", "TORCHELASTIC_RESTART_COUNT")
line = " ".join(os.environ[name] for name in names)
with open("told", "a") as told:
    told.write(f"{line}\n")
if sys.argv[1:]:
    if os.environ["RANK"] == "0":
        with suppress(FileExistsError), open("bad", "x") as bad:
            bad.write(os.environ["SLURMD_NODENAME"])
    if Path("bad").exists() and Path("bad").read_text() == os.environ["SLURMD_NODENAME"]:
        sys.exit(1)
while not os.path.exists("go") and not elastic.notice():
    time.sleep(0.05)
if not os.path.exists("go"):
    with open("saved", "a") as saved:
        saved.write(f"{line}\n")
    while Path("saved").read_text().count(os.environ["TORCHELASTIC_RUN_ID"]) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.05)  # as a collective would: the first node that is ready ends the round
    elastic.ready_to_leave()
    time.sleep(1_000)
