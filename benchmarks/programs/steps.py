"""Make steps and save now and then; after a restart all go on from the last step that any has saved. Where `hang` is in the
folder, rank 1 stands still, and so do the others, which would wait for it. `marks-NODE` there says when all that was."""

import os
import signal
import sys
import time
from pathlib import Path

import takes_a_second  # type: ignore[import-not-found] # noqa: F401

import elastic

STEPS, STEP_S, SAVE_S = int(sys.argv[1]), 0.05, 0.1
SAVES_EVERY = int(os.environ["ELASTIC_BENCHMARK_SAVES_EVERY"])
folder, rank, node = Path(os.environ["BENCHMARK_STAGE"]), os.environ["RANK"], os.environ["ELASTIC_BENCHMARK_NODE"]
marks = os.open(folder / f"marks-{node}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def mark(*what: object) -> None:
    os.write(marks, f"{' '.join(map(str, what))}\n".encode())


def stops(signum: int, frame: object) -> None:
    mark("end", time.monotonic())
    signal.signal(signum, signal.SIG_DFL)
    os.kill(os.getpid(), signum)


signal.signal(signal.SIGTERM, stops)
ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
asleep_s = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
mark("born", ticks / os.sysconf("SC_CLK_TCK") - asleep_s)
(folder / f"worker-{node}").write_text(str(os.getpid()))
saved, hung_before = folder / "saved", (folder / "hung").exists()
for step in range(int(saved.read_text()) + 1 if saved.exists() else 0, STEPS):
    time.sleep(STEP_S)
    if rank == "1" and (folder / "hang").exists():
        (folder / "hang").rename(folder / "hung")
    if not hung_before and (folder / "hung").exists():
        mark("hangs")
        time.sleep(600)
    elastic.progress(step=step)
    mark("step", time.monotonic(), step)
    (folder / "up").touch()
    if step % SAVES_EVERY == SAVES_EVERY - 1:
        mark("busy", time.monotonic())
        with elastic.busy("checkpoint", limit=60):
            time.sleep(SAVE_S)
            if not saved.exists() or int(saved.read_text()) < step:
                (folder / f"new-{node}").write_text(str(step))
                (folder / f"new-{node}").rename(saved)
        mark("saved", time.monotonic())
        elastic.saved(step=step)
mark("end", time.monotonic())
