"""What the benchmarks share: figures by launcher, bars, the table, and a stage that nothing is left on afterwards."""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from attrs import frozen

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
WINDOW_S = 20.0
"""How long an idle agent is looked at for one figure."""
MARK = {"ELASTIC_BENCHMARK": str(os.getpid())}
"""In the environment of every process that descends from this one."""

Samples = Mapping[str, Sequence[float]]


@frozen
class Bar:
    """What a measure has to reach."""

    text: str
    holds: Callable[[Mapping[str, float]], bool]
    """Told by the medians, by launcher."""


@frozen
class Measure:
    """One row of the table: figures by launcher."""

    title: str
    unit: str
    samples: Samples
    bars: tuple[Bar, ...] = ()


def ratio_of(peer: str, least: float) -> Bar:
    """At least so many times sooner than the peer."""
    return Bar(f"≤ 1/{least:g} of {peer}", lambda times: times["elastic"] <= times[peer] / least)


def medians_of(measure: Measure) -> Mapping[str, float]:
    return {name: median(samples) for name, samples in measure.samples.items()}


def all_hold(measures: Sequence[Measure]) -> bool:
    return all(bar.holds(medians_of(measure)) for measure in measures for bar in measure.bars)


@contextmanager
def stage() -> Iterator[None]:
    """What the launchers find around them, and nothing of it left afterwards."""
    with TemporaryDirectory(prefix="elastic-benchmark-") as scratch:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the warm-up compiles what pip would have compiled
        os.environ.update({"OMP_NUM_THREADS": "1", "TMPDIR": scratch, **MARK})
        try:
            yield
        finally:
            kill_descendants()


def kill_descendants() -> None:
    """Whatever still runs: torchrun's workers outlive a torchrun that was killed."""
    mark = "=".join(*MARK.items()).encode()
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass  # gone, or another user's


def shares(*pids: int) -> Mapping[int, float]:
    """Percent of one core that each process used in one window from now."""
    began_at, before = time.monotonic(), [cpu_s(pid) for pid in pids]
    time.sleep(WINDOW_S)
    window = time.monotonic() - began_at
    return {pid: 100 * (cpu_s(pid) - start) / window for pid, start in zip(pids, before, strict=True)}


def cpu_s(pid: int) -> float:
    """CPU time of all threads of a process, in nanoseconds' precision: clock_getcpuclockid(3) makes this number."""
    return time.clock_gettime(~pid << 3 | 2)


# --- the table


def facts() -> str:
    models = [
        line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    cores = f"{len(os.sched_getaffinity(0))} cores ({models[0] if models else platform.machine()})"
    versions = f"Python {platform.python_version()} · torch {version('torch')} · Linux {platform.release()}"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {cores} · {versions} · load {load()}"


def load() -> str:
    return " ".join(f"{average:.2f}" for average in os.getloadavg())


def table(measures: Sequence[Measure], launchers: Sequence[str], ratios: Sequence[tuple[str, str]]) -> list[str]:
    """Markdown. `ratios` are pairs of launchers: the first's median by the second's."""
    titles = [f"{this} / {that}" for this, that in ratios]
    head = ["median (min–max)", "", *launchers, *titles, "bar", "holds"]
    rows = [head, ["---"] * len(head), *(row(measure, launchers, ratios) for measure in measures)]
    widths = [max(len(line[column]) for line in rows) for column in range(len(head))]
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in rows
    ]


def row(measure: Measure, launchers: Sequence[str], ratios: Sequence[tuple[str, str]]) -> list[str]:
    medians = medians_of(measure)
    cells = [figure(measure.samples.get(launcher, ())) for launcher in launchers]
    quotients = [ratio(medians, this, that) for this, that in ratios]
    bars = ", ".join(bar.text for bar in measure.bars)
    holds = ", ".join("yes" if bar.holds(medians) else "NO" for bar in measure.bars)
    return [measure.title, measure.unit, *cells, *quotients, bars, holds]


def ratio(medians: Mapping[str, float], this: str, that: str) -> str:
    return short(medians[this] / medians[that]) if this in medians and that in medians else ""


def figure(samples: Sequence[float]) -> str:
    if not samples:
        return ""
    if len(samples) == 1:
        return short(samples[0])
    return f"{short(median(samples))} ({short(min(samples))}–{short(max(samples))})"


def short(value: float) -> str:
    """Three digits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def _stop(signum: int, frame: object) -> None:
    sys.exit(f"stopped by {signal.Signals(signum).name}")


def stop_on_signals() -> None:
    """Ctrl-C, a time-out: end in order, so that the stage is cleared."""
    for handled in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(handled, _stop)
