"""What a tee costs: workers that talk as fast as they can, under `elastic launch`, under torchrun, and alone.

    python benchmarks/output.py [--lines N] [--workers N] [--runs N]

Each worker writes lines of 100 bytes, one write each; --tee=3 takes them to a file and, with a prefix, to the console, which
is a pipe that this program reads to its end. Lost and mixed lines are counted in both. The launchers take turns. The exit
code is 1 if a bar is missed: 100,000 lines per second and worker, or what the worker alone reaches if that is less, nothing
lost, and an agent whose memory does not grow with what was said.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp

from attrs import frozen
from measuring import BIN, HERE, Bar, Measure, all_hold, cpu_s, facts, stage, stop_on_signals, table

TALKS = str(HERE / "programs" / "talks.py")
LAUNCHERS: Mapping[str, tuple[str, ...]] = {
    "elastic": (str(BIN / "elastic"), "launch"),
    "torchrun": (str(BIN / "torchrun"),),
}
LINE = re.compile(rb"^(?:\[default\d+\]:)?\.+ (\d+) (\d{8})$")
BAR = 100_000
LOOK_S = 0.02


@frozen
class Run:
    """One launch. `rate` is lines per second and worker, from the first byte to the last."""

    rate: float
    lost: int
    rss_mib: float
    cpu_us: float
    """Of the launcher, by line."""


class Watch:
    """The launcher's CPU time and largest memory, looked at while it runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.cpu = 0.0
        self.rss = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                self.cpu = cpu_s(self._pid)
                status = Path(f"/proc/{self._pid}/status").read_text()
                self.rss = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
            except (OSError, TypeError):
                return


def read_all(descriptor: int) -> tuple[bytes, float]:
    """Everything, and how long it took from the first byte on."""
    first = os.read(descriptor, 1 << 20)
    chunks, began_at = [first], time.monotonic()
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks), time.monotonic() - began_at


def run(launcher: str, workers: int, lines: int) -> Run:
    logs = mkdtemp(prefix="elastic-output-")
    options = ["--standalone", f"--nproc-per-node={workers}", "--tee=3", f"--log-dir={logs}"]
    command = [*LAUNCHERS[launcher], *options, TALKS, str(lines)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        watch = Watch(process.pid)
        shown, span = read_all(process.stdout.fileno())
        code = process.wait()
        watch.end()
    if code:
        raise RuntimeError(f"{' '.join(command)}: exit code {code}")
    written = b"".join(file.read_bytes() for file in Path(logs).rglob("stdout.log"))
    shutil.rmtree(logs)
    lost = max(workers * lines - whole(shown), workers * lines - whole(written))
    return Run(lines / span, lost, watch.rss, watch.cpu / (workers * lines) * 1e6)


def whole(output: bytes) -> int:
    """Lines that are there, unbroken, once, and each worker's in order."""
    last: dict[bytes, int] = {}
    count = 0
    for rank, number in lines_of(output):
        if number == last.get(rank, -1) + 1:
            count += 1
        last[rank] = number
    return count


def lines_of(output: bytes) -> Iterator[tuple[bytes, int]]:
    for line in output.splitlines():
        if match := LINE.match(line):
            yield match[1], int(match[2])


def alone(lines: int) -> float:
    """A worker's lines per second into a pipe that somebody reads."""
    environment = {**os.environ, "LOCAL_RANK": "0"}
    with subprocess.Popen([sys.executable, TALKS, str(lines)], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout
        _, span = read_all(process.stdout.fileno())
    return lines / span


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=500_000, help="per worker")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    stop_on_signals()
    with stage():
        print(facts())
        runs: dict[str, list[Run]] = {name: [] for name in LAUNCHERS}
        alone_rates = [alone(arguments.lines) for _ in range(arguments.runs)]
        for _ in range(arguments.runs):
            for name, made in runs.items():
                made.append(run(name, arguments.workers, arguments.lines))
        measures = [
            Measure(
                f"lines per s and worker, {arguments.workers} workers",
                "1/s",
                {**{name: [one.rate for one in made] for name, made in runs.items()}, "alone": alone_rates},
                (Bar("≥ 100,000, or alone", lambda rates: rates["elastic"] >= min(BAR, rates["alone"])),),
            ),
            Measure(
                "lines lost, mixed or out of order",
                "",
                {name: [float(one.lost) for one in made] for name, made in runs.items()},
                (Bar("0", lambda lost: lost["elastic"] == 0),),
            ),
            Measure(
                "launcher's CPU by line", "µs", {name: [one.cpu_us for one in made] for name, made in runs.items()}
            ),
            Measure(
                "launcher's largest memory",
                "MiB",
                {name: [one.rss_mib for one in made] for name, made in runs.items()},
                (Bar("≤ 64", lambda memory: memory["elastic"] <= 64),),
            ),
        ]
        print("\n".join(table(measures, ("elastic", "torchrun", "alone"), ())))
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    sys.exit(main())
