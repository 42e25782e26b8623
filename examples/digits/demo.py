"""Kill a worker, then a whole node, bring the node back, and watch the training go on: `make demo`.

The demo plays the user and causes the faults. It starts two agents on this machine as a user would on two, reads their
lines, and measures by its own clock. It knows only the launcher's command line and its lines; the table at the end is
what it saw. The job is elastic (1 to 2 nodes): the node that is left trains on alone, and takes the other in again.

`play` is the story: each step does something, then reads until its effect is seen. An effect that does not come in time
fails the demo, and nothing that it started outlives it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from attrs import field, frozen

TRAIN = Path(__file__).with_name("train.py")
HOST, OTHER = "node-a", "node-b"  # HOST serves the store in which they meet, so it is OTHER that is lost
LINE_MAX = 100
BREAK = " \\\n    "
EPOCHS = 14
STEP_DELAY_S = 0.02  # makes an epoch about half a second, so that there is a middle to kill in
INTO_THE_EPOCH_S = 0.3
ENOUGH = 0.95
LIMIT_S = 150.0  # of the whole run; on two quiet cores it takes a third of that
DEMO = "demo  "
COLOURS = {HOST: 36, OTHER: 35, DEMO: 33}  # ANSI, of the margin; on a terminal only
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

WORKER = re.compile(r"rank (?P<rank>\d+) of (?P<size>\d+), pid (?P<pid>\d+), restart (?P<restarts>\d+)")
EPOCH = re.compile(r"epoch (?P<epoch>\d+)/\d+ ")
ACCURACY = re.compile(r"accuracy on \d+ held-out digits: (?P<accuracy>[0-9.]+)")


def status(words: str) -> re.Pattern[str]:
    """Return a pattern for a line of the launcher that contains these words, with or without its clock."""
    return re.compile(rf"(?:[\d:]+ )?elastic  (?P<said>.*(?:{words}).*)")


class DidNotHappen(Exception):
    """An effect that the story waited for did not come."""


@frozen
class Line:
    at: float
    node: str
    text: str


@frozen
class Match:
    at: float
    groups: dict[str, str]  # the pattern's, and the node


@frozen
class Row:
    """One fault and its effects; all times are of the demo's clock."""

    what: str
    at: float
    noticed: Match
    up_at: float
    on_at: float
    charged: int  # restarts
    charge: int  # how many it should be


def matches(lines: Sequence[Line], pattern: re.Pattern[str], since: float = 0.0, **groups: str) -> list[Match]:
    """Return the lines that match the pattern with these groups."""
    found = [(line, pattern.match(line.text)) for line in lines if line.at >= since]
    all_ = [Match(line.at, {**match.groupdict(), "node": line.node}) for line, match in found if match]
    return [match for match in all_ if groups.items() <= match.groups.items()]


@frozen
class Job:
    """The running agents, and every line that they and their workers have printed."""

    directory: Path
    port: int
    until: float
    agents: dict[str, subprocess.Popen[str]] = field(factory=dict)
    lines: list[Line] = field(factory=list)
    _coming: SimpleQueue[Line | str] = field(factory=SimpleQueue)
    open: list[str] = field(factory=list)

    def start(self, node: str) -> None:
        own = [f"--node-id={node}", f"--rdzv-conf=is_host={str(node == HOST).lower()}"]
        same = ["--nnodes=1:2", "--nproc-per-node=2", "--max-restarts=3", "--rdzv-id=digits", "--redirects=2"]
        same += [f"--rdzv-endpoint=localhost:{self.port}", f"--log-dir={self.directory}/logs", os.path.relpath(TRAIN)]
        same += [f"--checkpoint-dir={self.directory}/shared", f"--step-delay={STEP_DELAY_S}", f"--epochs={EPOCHS}"]
        shown = BREAK.join(folded([*own, *(["..."] if self.agents else same)]))
        tell(f"$ elastic launch {shown}    # on {node}")
        command = [sys.executable, "-m", "elastic", "launch", *own, *same]
        self.agents[node] = agent = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.open.append(node)
        threading.Thread(target=self._pump, args=(node, agent), daemon=True).start()

    def _pump(self, node: str, agent: subprocess.Popen[str]) -> None:
        for text in agent.stdout or ():
            self._coming.put(Line(time.monotonic(), node, text.rstrip()))
        self._coming.put(node)

    def read(self, what: str) -> None:
        """Read the next line of any node, or the end of its output. Raise DidNotHappen, naming `what`, if none comes."""
        if not self.open:
            raise DidNotHappen(f"the job ended before {what}")
        try:
            coming = self._coming.get(timeout=max(self.until - time.monotonic(), 0.0))
        except Empty:
            raise DidNotHappen(f"not within {LIMIT_S:.0f} s: {what}") from None
        if isinstance(coming, Line):
            self.lines.append(coming)
            say(coming.node, coming.text)
        else:
            self.open.remove(coming)

    def sees(self, what: str, pattern: re.Pattern[str], since: float = 0.0, **groups: str) -> Match:
        """Wait for the first line that matches, and return it."""
        while not (found := matches(self.lines, pattern, since, **groups)):
            self.read(what)
        return found[0]

    def trains(self, epochs: int) -> None:
        """Wait until this many more epochs are done, and the next one has begun."""
        done = matches(self.lines, EPOCH)
        last = int(done[-1].groups["epoch"]) + epochs if done else epochs
        self.sees(f"epoch {last} was done", EPOCH, epoch=str(last))
        time.sleep(INTO_THE_EPOCH_S)

    def suffers(self, what: str, do: Callable[[], object], words: str, size: int, charge: int) -> Row:
        """Cause a fault; wait for the launcher's line about it, for `size` workers, and for their next epoch."""
        before = matches(self.lines, WORKER)[-1]
        at = time.monotonic()
        do()
        noticed = self.sees(f"{HOST} noticed: {what}", status(words), at, node=HOST)
        up = self.sees(f"{size} workers ran after: {what}", WORKER, at, size=str(size))
        on = self.sees(f"an epoch was done after: {what}", EPOCH, up.at)
        spent = int(up.groups["restarts"]) - int(before.groups["restarts"])
        return Row(what, at, noticed, up.at, on.at, spent, charge)

    def stop(self) -> None:
        """Stop the agents that still run; an agent that must be killed takes its workers along."""
        for agent in self.agents.values():
            agent.terminate()
        for agent in self.agents.values():
            try:
                agent.wait(timeout=10)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()


def play(job: Job) -> list[Row]:
    job.start(HOST)
    job.start(OTHER)
    job.sees("two nodes with two workers each ran", WORKER, size="4")
    job.trains(epochs=2)

    worker = matches(job.lines, WORKER, node=HOST)[-1].groups
    rank, pid = worker["rank"], int(worker["pid"])
    kill_it = partial(kill, pid, f"the worker of rank {rank}, on {HOST}")
    rows = [job.suffers(f"a worker killed: rank {rank}", kill_it, rf"pid {pid}\b", size=4, charge=1)]
    job.trains(epochs=1)

    lost = job.agents[OTHER]
    kill_it = partial(kill, lost.pid, f"the agent on {OTHER}; its workers die with it")
    rows += [job.suffers(f"a node killed: {OTHER}", kill_it, r"\b(?:lost|without)\b", size=2, charge=0)]
    lost.wait()

    rows += [job.suffers(f"{OTHER} started again", partial(job.start, OTHER), OTHER, size=4, charge=0)]
    while job.open:
        job.read("the end of all agents")
    return rows


def kill(pid: int, what: str) -> None:
    tell(f"$ kill -9 {pid}    # {what}")
    os.kill(pid, signal.SIGKILL)


def complaints_about(job: Job, rows: Sequence[Row], accuracy: float) -> list[str]:
    """Return what is wrong with a story that was told to its end."""
    codes = {node: agent.wait(timeout=10) for node, agent in job.agents.items()}
    pids = [match.groups["pid"] for match in matches(job.lines, WORKER)]
    return [
        *(f"{row.what}: not {row.charge} restarts charged" for row in rows if row.charged != row.charge),
        *(f"the agent on {node} ended with exit code {code}" for node, code in codes.items() if code),
        *(f"worker {pid} still runs" for pid in pids if Path(f"/proc/{pid}/exe").exists()),
        *([f"the accuracy, {accuracy}, is below {ENOUGH}"] if accuracy < ENOUGH else []),
    ]


def table(rows: Sequence[Row]) -> list[str]:
    """Return a line for each fault, and under it the launcher's own line about it."""
    heads = ("noticed", "workers up", "trained on", "restarts")
    lines = [f"  {'':<28}" + "".join(f"{head:>12}" for head in heads)]
    for row in rows:
        after = [f"{at - row.at:.1f} s" for at in (row.noticed.at, row.up_at, row.on_at)]
        lines.append(f"  {row.what:<28}" + "".join(f"{cell:>12}" for cell in (*after, row.charged)))
        lines.append(f"      {row.noticed.groups['said']}")
    return lines


def folded(words: Sequence[str]) -> Iterator[str]:
    """Yield the words as lines that fit a terminal."""
    line = ""
    for word in words:
        if line and len(line) + len(word) >= LINE_MAX:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    yield line


def say(who: str, text: str) -> None:
    margin = f"{who} |"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        margin = f"\x1b[{COLOURS[who]}m{margin}\x1b[0m"
        text = f"\x1b[1m{text}\x1b[0m" if who == DEMO else text
    print(f"{margin} {text}", flush=True)


def tell(text: str) -> None:
    print()
    for line in text.splitlines():
        say(DEMO, line)


def main() -> int:
    for signum in HANDLED:
        signal.signal(signum, lambda signum, _: sys.exit(128 + signum))
    with socket.socket() as holder:  # keeps the port from others until the first node serves its store there
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("localhost", 0))
        return demonstrate(int(holder.getsockname()[1]))


def demonstrate(port: int) -> int:
    began_at = time.monotonic()
    job = Job(Path(tempfile.mkdtemp(prefix="elastic_demo_")), port, began_at + LIMIT_S)
    complaints: list[str] = []
    try:
        rows = play(job)
        accuracy = float(job.sees("the accuracy", ACCURACY).groups["accuracy"])
        print("", *table(rows), f"\n  accuracy: {accuracy:.1%} of the held-out digits", sep="\n", flush=True)
        complaints = complaints_about(job, rows, accuracy)
    except DidNotHappen as reason:
        complaints = [str(reason)]
    finally:
        for signum in HANDLED:
            signal.signal(signum, signal.SIG_IGN)  # stopping is bounded
        job.stop()
        if not complaints:
            shutil.rmtree(job.directory)
    for complaint in complaints:
        tell(f"FAILED: {complaint}; the workers' stderr is kept under {job.directory}/logs")
    tell(f"all of it in {time.monotonic() - began_at:.0f} s")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
