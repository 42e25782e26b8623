"""Make steps; rank 0 saves now and then, and all go on from the last saved one after a restart. Where `hang` is in the
folder, rank 1 stands still, and so do the others, which would wait for it."""

import os
import sys
import time
from pathlib import Path

import takes_a_second  # type: ignore[import-not-found] # noqa: F401

import elastic

STEPS, STEP_S, SAVE_S = int(sys.argv[1]), 0.05, 0.1
SAVES_EVERY = int(os.environ["ELASTIC_BENCHMARK_SAVES_EVERY"])
folder, rank = Path(os.environ["BENCHMARK_STAGE"]), os.environ["RANK"]
(folder / f"worker-{os.environ['ELASTIC_BENCHMARK_NODE']}").write_text(str(os.getpid()))
saved, hung_before = folder / "saved", (folder / "hung").exists()
for step in range(int(saved.read_text()) + 1 if saved.exists() else 0, STEPS):
    time.sleep(STEP_S)
    if rank == "1" and (folder / "hang").exists():
        (folder / "hang").rename(folder / "hung")
    if not hung_before and (folder / "hung").exists():
        time.sleep(600)
    elastic.progress(step=step)
    (folder / "up").touch()
    if step % SAVES_EVERY == SAVES_EVERY - 1:
        with elastic.busy("checkpoint", limit=60):
            time.sleep(SAVE_S)
            if rank == "0":
                (folder / "new").write_text(str(step))
                (folder / "new").rename(saved)
        elastic.saved(step=step)
