"""Real agents on this machine, up to 256, each with a worker that only waits: what the store carries until all run, and how
long a start, a failure, a lost node and the end take.

    python benchmarks/real_agents.py [--agents 64,256] [--start staggered|together]

`staggered`: the store is there, and the agents come as fast as this machine can start them. `together`: all agents are there
and wait, and then the store comes; so the time until all run does not count the start of the processes.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen
from measuring import BIN, cpu_s, facts, load, short, stage, stop_on_signals
from nodes import free_port

from elastic.adapters.store.tcpstore.serving import StoreHost, claimed_alone
from elastic.adapters.store.tcpstore.serving import served as begun
from elastic.adapters.store.tcpstore.wire import Address, WireClient

TIMEOUT_S = 900
LOOKS = 3
"""So many looks in a row find a process asleep that has started."""
HEAD = ("agents", "start", "first world, s", "bytes until then", "connections", "store CPU, s")
HEAD_OF_EVENTS = ("failure known to all, s", "all run again, s", "lost node: all run again, s", "end, s")


@frozen
class Worker:
    """A worker that said that it runs, and when that was read."""

    pid: int
    at: float


class Agents:
    """The agents of one job, and the lines of all their workers."""

    def __init__(self, count: int, port: int, folder: Path) -> None:
        self.count, self._port, self._folder = count, port, folder
        read, self._write = os.pipe()
        self._lines = os.fdopen(read, "rb")
        os.mkfifo(folder / "end")
        (folder / "worker.sh").write_text(f"echo up $$; exec cat {folder / 'end'}\n")
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        options = [f"--nnodes={self.count - 1}:{self.count}", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-id=b"]
        options += [f"--rdzv-endpoint=localhost:{self._port}", "--rdzv-conf=is_host=false", "--no-python"]
        worker = ["sh", str(self._folder / "worker.sh")]
        null = subprocess.DEVNULL
        for number in range(self.count):
            command = [str(BIN / "elastic"), "launch", f"--node-id=n{number:03}", *options, *worker]
            self.processes.append(subprocess.Popen(command, stdin=null, stdout=self._write, stderr=null))

    def run(self, count: int) -> list[Worker]:
        """Wait until so many workers have said that they run."""
        running = list[Worker]()
        while len(running) < count:
            word, _, pid = self._lines.readline().decode().rstrip().partition(" ")
            if word == "up":
                running.append(Worker(int(pid), time.monotonic()))
        return running

    def end(self) -> None:
        """Let all workers succeed."""
        os.close(os.open(self._folder / "end", os.O_WRONLY))

    def close(self) -> None:
        for each in self.processes:
            each.kill()
            each.wait()
        os.close(self._write)
        self._lines.close()


@contextmanager
def agents(count: int, port: int) -> Iterator[Agents]:
    with TemporaryDirectory() as folder:
        signal.alarm(TIMEOUT_S)
        made = Agents(count, port, Path(folder))
        try:
            yield made
        finally:
            made.close()
            signal.alarm(0)


def traffic(port: int) -> tuple[int, int]:
    """Return how many bytes the store has sent and received over the connections that are open, and how many these are."""
    told = subprocess.run(["ss", "-tinH", "sport", "=", f":{port}"], capture_output=True, text=True, check=True).stdout
    sums = [int(each) for each in re.findall(r"\bbytes_(?:sent|received):(\d+)", told)]
    return sum(sums), len(re.findall(r"^ESTAB", told, re.MULTILINE))


def gone(workers: Sequence[Worker]) -> float:
    """Wait until all these workers have ended. Return when the last one had."""
    poll, left = select.poll(), 0
    for each in workers:
        try:
            poll.register(os.pidfd_open(each.pid), select.POLLIN)
            left += 1
        except ProcessLookupError:
            pass
    while left:
        for descriptor, _ in poll.poll():
            poll.unregister(descriptor)
            os.close(descriptor)
            left -= 1
    return time.monotonic()


def quiet(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until each of these processes was asleep in a few looks in a row: it has started, and waits for the store. Its
    CPU time does not tell: a process that starts on a busy machine gets little of it."""
    looks = {each.pid: 0 for each in processes}
    while looks:
        time.sleep(0.2)
        looks = {pid: looks[pid] + 1 if is_asleep(pid) else 0 for pid in looks if looks[pid] < LOOKS}


def is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("S")


def served(port: int) -> StoreHost:
    address = Address("localhost", port)
    return begun(address, claimed_alone(address))[0]


def answers(port: int) -> None:
    """Wait until the store answers: it imports torch first."""
    with WireClient(Address("localhost", port), TIMEOUT_S, 0) as client:
        client.greet()


def measure(count: int, start: str) -> Mapping[str, float]:
    port = free_port()
    with agents(count, port) as job:
        host = served(port) if start == "staggered" else None
        if host:
            answers(port)
        began_at = time.monotonic()
        job.start()
        if host is None:
            quiet(job.processes)
            host = served(port)
            answers(port)
            began_at = time.monotonic()
        try:
            return _measured(job, host, port, began_at)
        finally:
            host.close()


def _measured(job: Agents, host: StoreHost, port: int, began_at: float) -> Mapping[str, float]:
    figures, spent = dict[str, float](), cpu_s(host.pid)
    running = job.run(job.count)
    figures["bytes until then"], figures["connections"] = traffic(port)
    figures["first world, s"], figures["store CPU, s"] = running[-1].at - began_at, cpu_s(host.pid) - spent
    time.sleep(5.0)
    first, *others = running
    at = time.monotonic()
    os.kill(first.pid, signal.SIGKILL)
    figures["failure known to all, s"] = gone(others) - at
    again = job.run(job.count)
    figures["all run again, s"] = again[-1].at - at
    time.sleep(5.0)
    at = time.monotonic()
    job.processes[job.count // 2].kill()
    figures["lost node: all run again, s"] = job.run(job.count - 1)[-1].at - at
    time.sleep(5.0)
    at = time.monotonic()
    job.end()
    for each in job.processes:
        each.wait()
    figures["end, s"] = time.monotonic() - at
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", default="64,256", metavar="N,N", help="numbers of agents")
    parser.add_argument("--start", default="staggered,together", metavar="HOW,HOW", help="staggered, together")
    given = parser.parse_args()
    head = (*HEAD, *HEAD_OF_EVENTS)
    with stage():
        print("\n".join([facts(), "", "| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]), flush=True)
        for count in map(int, given.agents.split(",")):
            for start in given.start.split(","):
                figures = measure(count, start)
                cells = [f"{count}", start, *(_spelled(name, figures[name]) for name in head[2:])]
                print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\nload afterwards {load()}")
    return 0


def _spelled(name: str, figure: float) -> str:
    if "bytes" in name:
        return f"{figure / 1e6:.2f} MB"
    return f"{figure:.0f}" if name == "connections" else short(figure)


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
