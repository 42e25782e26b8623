"""Several agents on one host, beside torchrun: start, restart, end; and what torchrun has nothing to set beside: a node that
is lost, replaced, added.

    python benchmarks/nodes.py [--runs N] [--agents 2,4,8,16,32] [--only together|loss|replacement|scale-up|idle]

The launchers take turns. All agents share this machine's cores, so with many of them it is their CPU time that is measured.
The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen
from measuring import BIN, HERE, Bar, Measure, all_hold, facts, load, ratio_of, shares, stage, stop_on_signals, table
from stores import etcd_cluster

RUN_TIMEOUT_S = 300
PROGRAM = HERE / "programs" / "round_trip.py"
STAYS = HERE / "programs" / "sleeps.py"
TTL_S = 5.0
ETCD = "elastic, etcd"
ETCD_MEMBERS = 3
LAUNCHERS = ("elastic", "torchrun", ETCD)
RATIOS = (("torchrun", "elastic"),)


class Job:
    """Some agents of one job on this host, and the lines of all their workers."""

    def __init__(
        self, launcher: str, nodes: str, folder: Path, program: Path, restarts: int = 1, endpoint: str = ""
    ) -> None:
        """`endpoint` is where they meet; without one they meet on a TCPStore of their own."""
        self._launcher = launcher
        self._nodes = nodes
        self._program = program
        self._restarts = restarts
        self._endpoint = endpoint or f"localhost:{free_port()}"
        self._serves = not endpoint
        self._folder = folder
        self._agents: list[subprocess.Popen[bytes]] = []
        read, self._write = os.pipe()
        self._lines = os.fdopen(read, "rb")
        for name in ("break", "end"):
            os.mkfifo(folder / name)

    def start(self, name: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "BENCHMARK_STAGE": str(self._folder)}
        null = subprocess.DEVNULL
        agent = subprocess.Popen(self._command(name), stdin=null, stdout=self._write, stderr=null, env=environment)
        self._agents.append(agent)
        return agent

    def _command(self, name: str) -> list[str]:
        meeting = f"--rdzv-endpoint={self._endpoint}"
        size = [f"--nnodes={self._nodes}", "--nproc-per-node=1", f"--max-restarts={self._restarts}"]
        options = [*size, meeting, "--rdzv-id=b"]
        if self._launcher == "elastic":  # the first serves the store, so it is never the one that is killed
            host = [f"--rdzv-conf=is_host={'false' if self._agents else 'true'}"] if self._serves else []
            return [str(BIN / "elastic"), "launch", *options, f"--node-id={name}", *host, str(self._program)]
        return [str(BIN / "torchrun"), "--rdzv-backend=c10d", *options, str(self._program)]

    def hears(self, word: str, times: int) -> float:
        """Wait for so many lines with this word; when the last came. Others are passed over."""
        while times:
            times -= self._lines.readline().decode().startswith(word)
        return time.monotonic()

    def said_at(self, word: str, times: int = 1) -> float:
        """By the last of so many workers' own clock, which is this one too."""
        last = 0.0
        while times:
            found, _, at = self._lines.readline().decode().rstrip("\n").rpartition(" ")
            if found == word:
                last, times = max(last, float(at)), times - 1
        return last

    def word(self, name: str) -> None:
        (self._folder / name).write_text("now")

    def ends(self) -> float:
        for agent in self._agents:
            agent.wait()
        return time.monotonic()

    def close(self) -> None:
        for agent in self._agents:
            agent.kill()
            agent.wait()
        os.close(self._write)
        self._lines.close()


@contextmanager
def job(launcher: str, nodes: str, program: Path = PROGRAM, restarts: int = 1, endpoint: str = "") -> Iterator[Job]:
    with TemporaryDirectory() as folder:
        signal.alarm(RUN_TIMEOUT_S)
        made = Job(launcher, nodes, Path(folder), program, restarts, endpoint)
        try:
            yield made
        finally:
            made.close()
            signal.alarm(0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@frozen
class Times:
    """Of one job: seconds."""

    start: float
    restart: float
    end: float


def together(launcher: str, agents: int) -> Times:
    """All agents started at once; then one worker dies; then all end."""
    with job(launcher, str(agents)) as made:
        began_at = time.monotonic()
        for number in range(agents):
            made.start(f"n{number}")
        runs_at = made.hears("runs", agents)
        made.word("break")
        died_at = made.said_at("dies")
        back_at = made.hears("runs", agents)
        made.word("end")
        last_worker_at = made.said_at("ends", agents)
        return Times(runs_at - began_at, back_at - died_at, made.ends() - last_worker_at)


def measure_together(runs: int, sizes: Sequence[int]) -> list[Measure]:
    measures = []
    for agents in sizes:
        samples: dict[str, list[Times]] = {"elastic": [], "torchrun": []}
        for _ in range(runs):
            for launcher, counted in samples.items():
                counted.append(together(launcher, agents))
        for what in ("start", "restart", "end"):
            figures = {name: [1000 * getattr(times, what) for times in counted] for name, counted in samples.items()}
            measures.append(Measure(f"{agents} agents: {what}", "ms", figures, bars(what, agents)))
        print("\n".join(table(measures[-3:], LAUNCHERS, RATIOS)), flush=True)
    return measures


def bars(what: str, agents: int) -> tuple[Bar, ...]:
    if what == "restart" and agents == 2:
        return (ratio_of("torchrun", 12),)
    if agents in (16, 32):
        return {"start": (ratio_of("torchrun", 3),), "restart": (ratio_of("torchrun", 5),)}.get(what, ())
    return ()


# --- what torchrun cannot do


def loss(endpoint: str = "") -> float:
    """An agent and its worker are killed in an elastic job: until the survivors' workers run again."""
    with job("elastic", "2:3", STAYS, 0, endpoint) as made:
        victim = [made.start(name) for name in "abc"][-1]
        made.hears("worker", 3)
        killed_at = time.monotonic()
        victim.kill()
        return made.hears("worker", 2) - killed_at


def measure_loss(runs: int) -> list[Measure]:
    """On both stores, in turn; each job has a cluster of its own, as it has a TCPStore of its own."""
    samples: dict[str, list[float]] = {"elastic": [], ETCD: []}
    for _ in range(runs):
        samples["elastic"].append(1000 * loss())
        with etcd_cluster(ETCD_MEMBERS) as cluster:
            samples[ETCD].append(1000 * loss(f"etcd://{cluster.endpoints}"))
    bars = (
        Bar("≤ 1.5 TTL + 0.5 s", lambda medians: medians["elastic"] <= 1000 * (1.5 * TTL_S + 0.5)),
        Bar("etcd: ≤ its lease + 1 s", lambda medians: medians[ETCD] <= 1000 * (TTL_S + 1.0)),
    )
    return [Measure("node lost → survivors run again", "ms", samples, bars)]


def replacement() -> float:
    """In a job of fixed size, after a loss: from the start of the replacement's agent until all workers run again."""
    with job("elastic", "3", STAYS, 0) as made:
        victim = [made.start(name) for name in "abc"][-1]
        made.hears("worker", 3)
        victim.kill()
        time.sleep(2 * TTL_S)
        began_at = time.monotonic()
        made.start("d")
        return made.hears("worker", 3) - began_at


def scale_up() -> float:
    """A newcomer to a running elastic job: from the start of its agent until all workers run. 1 s of it is upscale_after."""
    with job("elastic", "1:3", STAYS, 0) as made:
        for name in "ab":
            made.start(name)
        made.hears("worker", 2)
        time.sleep(1.0)
        began_at = time.monotonic()
        made.start("c")
        return made.hears("worker", 3) - began_at


def measure_one(title: str, once: object, runs: int, *bars: Bar) -> list[Measure]:
    assert callable(once)
    return [Measure(title, "ms", {"elastic": [1000 * once() for _ in range(runs)]}, bars)]


def measure_idle(runs: int) -> list[Measure]:
    with job("elastic", "2", STAYS, 0) as made:
        agents = [made.start(name) for name in "ab"]
        made.hears("worker", 2)
        time.sleep(3.0)
        windows = [shares(*(agent.pid for agent in agents)) for _ in range(runs)]
    worst = [max(window.values()) for window in windows]
    bar = Bar("< 0.5 %", lambda medians: medians["elastic"] < 0.5)
    return [Measure("idle agent of two, of one core", "%", {"elastic": worst}, (bar,))]


def measures(runs: int, sizes: Sequence[int], only: str | None) -> list[Measure]:
    arrived = Bar("≤ 0.5 s", lambda medians: medians["elastic"] <= 500)
    parts: Mapping[str, object] = {
        "together": lambda: measure_together(runs, sizes),
        "loss": lambda: measure_loss(runs),
        "replacement": lambda: measure_one("replacement started → all run", replacement, runs, arrived),
        "scale-up": lambda: measure_one("newcomer started → all run", scale_up, runs),
        "idle": lambda: measure_idle(max(runs // 3, 3)),
    }
    return [done for name, part in parts.items() if only in (None, name) and callable(part) for done in part()]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="counted runs of each launcher [10]")
    parser.add_argument("--agents", default="2,4,8,16,32", metavar="N,N", help="numbers of agents")
    parser.add_argument("--only", choices=["together", "loss", "replacement", "scale-up", "idle"])
    given = parser.parse_args()
    with stage():
        print(f"{facts()}\n{given.runs} counted runs each, in turn\n", flush=True)
        done = measures(given.runs, [int(size) for size in given.agents.split(",")], given.only)
        print("\n".join(["", *table(done, LAUNCHERS, RATIOS)]))
        print(f"\nload afterwards {load()}")
    return 0 if all_hold(done) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
