"""A worker is killed in the middle of an epoch, and training goes on: what `make demo` shows.

The demo plays the user and the fault. It starts the launcher as a user would, reads along on stdout and stderr, sends
SIGKILL to one worker once some epochs are done, and measures by its own clock how long until the next epoch is done. It
knows nothing of the launcher but its command line and the lines it prints; what it tells at the end is what it saw. The
two streams stay apart and keep their places, so `demo.py 2>/dev/null` shows the workers' side alone.

`--launcher torchrun` runs the same script with the same options under torchrun, to compare.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TextIO

from attrs import define, field, frozen

TRAIN = Path(__file__).with_name("train.py")
LAUNCHERS = {"elastic": ["elastic", "launch"], "torchrun": ["torch.distributed.run"]}

VICTIM = 1  # the rank that is killed
EPOCHS_BEFORE_THE_KILL = 4
STEP_DELAY_S = 0.02  # makes an epoch about half a second, so that there is a middle to kill in
INTO_THE_EPOCH_S = 0.3
ENOUGH = 0.95
LIMIT_S = 120.0  # of the whole run; then the launcher is told to end

STARTED = re.compile(r"rank (\d+) of \d+, pid (\d+), restart \d+")
EPOCH = re.compile(r"epoch (\d+)/\d+ ")
ACCURACY = re.compile(r"accuracy on \d+ held-out digits: ([0-9.]+)")
FAILED = re.compile(r"elastic .*rank.* failed: ")
RESTARTED = re.compile(r"elastic .*restart \d+ of \d+")


@frozen
class Line:
    at: float
    text: str


@define
class Seen:
    """What has been read of the run so far; times are the demo's clock."""

    pids: dict[int, int] = field(factory=dict)
    epoch: int = 0
    restarts: int = 0
    failed: Line | None = None
    restarted: Line | None = None
    up_again_at: float | None = None
    back_at: float | None = None
    accuracy: float | None = None

    def read(self, line: Line) -> None:
        if started := STARTED.search(line.text):
            rank, pid = int(started[1]), int(started[2])
            if rank == VICTIM and VICTIM in self.pids:
                self.restarts += 1
                self.up_again_at = self.up_again_at or line.at
            self.pids[rank] = pid
        elif epoch := EPOCH.match(line.text):
            self.epoch = int(epoch[1])
            if self.restarts and self.back_at is None:
                self.back_at = line.at
        elif accuracy := ACCURACY.match(line.text):
            self.accuracy = float(accuracy[1])
        elif FAILED.search(line.text) and self.failed is None:
            self.failed = line
        elif RESTARTED.search(line.text) and self.restarted is None:
            self.restarted = line


@frozen
class Kill:
    at: float
    pid: int
    epoch: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--launcher", choices=sorted(LAUNCHERS), default="elastic")
    launcher = parser.parse_args().launcher
    with tempfile.TemporaryDirectory(prefix="elastic_demo_") as directory:
        try:
            return demonstrate(launcher, Path(directory))
        except KeyboardInterrupt:
            return 128 + signal.SIGINT


def demonstrate(launcher: str, directory: Path) -> int:
    command = command_line(launcher, directory)
    tell("$ " + " ".join(command).replace(f"{sys.executable} -m elastic", "elastic"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(LIMIT_S, process.terminate)
    limit.start()
    started_at = time.monotonic()
    seen = Seen()
    kill: Kill | None = None
    try:
        for line in lines_of(process):
            seen.read(line)
            if kill is None and seen.epoch >= EPOCHS_BEFORE_THE_KILL and VICTIM in seen.pids:
                kill = kill_in_the_middle_of(seen.epoch + 1, seen.pids[VICTIM])
        code = process.wait()
    finally:
        limit.cancel()
        end(process)
    print_outcome(seen, kill)
    return verdict(code, time.monotonic() - started_at, seen, kill)


def command_line(launcher: str, directory: Path) -> list[str]:
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=3", f"--log-dir={directory}/logs"]
    training = [f"--checkpoint-dir={directory}/checkpoints", f"--step-delay={STEP_DELAY_S}", "--epochs=12"]
    return [sys.executable, "-m", *LAUNCHERS[launcher], *options, os.path.relpath(TRAIN), *training]


def lines_of(process: subprocess.Popen[str]) -> Iterator[Line]:
    """The lines of both streams as they come, each passed on to our own stream; ends when both have."""
    lines: SimpleQueue[Line | None] = SimpleQueue()

    def pump(source: IO[str], to: TextIO) -> None:
        for text in source:
            lines.put(Line(time.monotonic(), text.rstrip()))
            to.write(text)
            to.flush()
        lines.put(None)

    assert process.stdout is not None
    assert process.stderr is not None
    for source, to in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
        threading.Thread(target=pump, args=(source, to), daemon=True).start()
    for _ in range(2):
        yield from iter(lines.get, None)


def end(process: subprocess.Popen[str]) -> None:
    """Nothing to do for a launcher that has ended; otherwise it gets the time that it needs to stop its workers."""
    process.terminate()
    try:
        process.wait(timeout=40)
    except subprocess.TimeoutExpired:
        process.kill()


def kill_in_the_middle_of(epoch: int, pid: int) -> Kill:
    time.sleep(INTO_THE_EPOCH_S)
    tell(f"kill -9 {pid}    # the worker of rank {VICTIM}, in the middle of epoch {epoch}")
    kill = Kill(time.monotonic(), pid, epoch)
    os.kill(pid, signal.SIGKILL)
    return kill


def tell(text: str) -> None:
    print(f"\ndemo     {text}\n", flush=True)


def print_outcome(seen: Seen, kill: Kill | None) -> None:
    rows: list[tuple[str, str]] = []
    if kill:
        rows.append(("killed", f"rank {VICTIM} (pid {kill.pid}) by SIGKILL, in the middle of epoch {kill.epoch}"))
        steps = [
            ("detected", seen.failed and seen.failed.at, f"by the launcher: {said(seen.failed)}"),
            ("restarted", seen.restarted and seen.restarted.at, f"by the launcher: {said(seen.restarted)}"),
            ("connected", seen.up_again_at, "the new workers have imported torch and found each other"),
            ("trained on", seen.back_at, f"epoch {kill.epoch} is done, anew from its start"),
        ]
        rows += [(what, f"{at - kill.at:5.2f} s after the kill: {text}") for what, at, text in steps if at]
    if seen.accuracy is not None:
        rows.append(("accuracy", f"{seen.accuracy:.1%} of the held-out digits"))
    print()
    for what, text in rows:
        print(f"  {what:<12}{text}")
    print(flush=True)


def said(line: Line | None) -> str:
    """What the launcher said in the line, without its clock and name."""
    return line.text.partition("elastic")[2].strip() if line else ""


def verdict(code: int, took_s: float, seen: Seen, kill: Kill | None) -> int:
    """0 if the run was killed, restarted and still learned; otherwise 1, and why."""
    complaints = [
        *([f"not done after {LIMIT_S:.0f} s: the launcher was told to end"] if took_s >= LIMIT_S else []),
        *([f"the launcher ended with exit code {code}"] if code else []),
        *(["training ended before the demo could kill a worker"] if kill is None else []),
        *(["there was no restart"] if not seen.restarts else []),
        *([f"accuracy {seen.accuracy} is below {ENOUGH}"] if (seen.accuracy or 0.0) < ENOUGH else []),
    ]
    for complaint in complaints:
        print(f"demo     FAILED: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
