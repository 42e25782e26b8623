"""Kill a worker, then a whole node, bring the node back, and watch the training go on: `make demo`.

The demo plays the user and causes the faults. It starts two agents on this machine as a user would on two, reads their
lines, and measures by its own clock. It knows only the launcher's command line and its lines. The table at the end is what
it saw; what `elastic goodput` makes of each job's traces comes after it. The job is elastic (1 to 2 nodes): the node that is
left trains on alone, and takes the other in again.

A second job runs beside it with neither standbys nor links, off the screen. The same faults happen there. The two jobs take
turns: while one recovers, the other has no fault.

`play` is the story: each step does something, then reads until its effect is seen. At the end the demo stops the training.
An effect that does not come in time fails the demo, and nothing that it started outlives it.
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
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from attrs import field, frozen

TRAIN = Path(__file__).with_name("train.py")
HOST, OTHER = "node-a", "node-b"  # HOST serves the store in which they meet, so it is OTHER that is lost
LINE_MAX = 100
BREAK = " \\\n    "
EPOCHS = 1000  # more than can be done
STEP_DELAY_S = 0.02  # makes an epoch about half a second, so that there is a middle to kill in
INTO_THE_EPOCH_S = 0.3
ENOUGH = 0.95
LIMIT_S = 240.0
DEMO = "demo  "
COLOURS = {HOST: 36, OTHER: 35, DEMO: 33}  # ANSI, of the margin; on a terminal only
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPED = (128 + signal.SIGTERM, -signal.SIGTERM)  # the exit codes of an agent that was told to stop

WORKER = re.compile(r"rank (?P<rank>\d+) of (?P<size>\d+), pid (?P<pid>\d+), restart (?P<restarts>\d+)")
EPOCH = re.compile(r"epoch (?P<epoch>\d+)/\d+ .* accuracy (?P<accuracy>[0-9.]+)")


def status(words: str) -> re.Pattern[str]:
    """Return a pattern for a line of the launcher that contains these words, with or without its clock."""
    return re.compile(rf"(?:[\d:]+ )?elastic  (?P<said>.*(?:{words}).*)")


@frozen
class Way:
    """How a job recovers: what its agents are told besides, and how the table calls it. Links between agents are on by
    default."""

    name: str
    options: tuple[str, ...] = ()
    conf: str = ""

    @property
    def has_standbys(self) -> bool:
        return "--standby" in self.options


WAYS = (Way("with standbys and links", ("--standby",)), Way("with neither", conf=",peer_links=false"))
READY = status("standby ready")


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

    way: Way
    directory: Path
    port: int
    until: float
    is_shown: bool = True
    turn: threading.Lock = field(factory=threading.Lock)  # held while the job recovers; the jobs share it
    agents: dict[str, subprocess.Popen[str]] = field(factory=dict)
    lines: list[Line] = field(factory=list)
    _coming: SimpleQueue[Line | str] = field(factory=SimpleQueue)
    open: list[str] = field(factory=list)
    changing: threading.Lock = field(factory=threading.Lock)
    is_over: threading.Event = field(factory=threading.Event)

    @property
    def traces(self) -> Path:
        return self.directory / "traces"

    def start(self, node: str) -> None:
        """Start an agent. Raise DidNotHappen if the job was stopped."""
        own = [f"--node-id={node}", f"--rdzv-conf=is_host={str(node == HOST).lower()}{self.way.conf}"]
        same = ["--nnodes=1:2", *self.way.options, "--max-restarts=3", "--rdzv-id=digits", "--redirects=2"]
        same += [f"--rdzv-endpoint=localhost:{self.port}", f"--log-dir={self.directory}/logs"]
        same += [f"--trace={self.traces}/", os.path.relpath(TRAIN)]
        same += [f"--checkpoint-dir={self.directory}/shared", f"--step-delay={STEP_DELAY_S}", f"--epochs={EPOCHS}"]
        shown = BREAK.join(folded([*own, *(["..."] if self.agents else same)]))
        self.tell(f"$ elastic launch {shown}    # on {node}")
        command = [sys.executable, "-m", "elastic", "launch", *own, *same]
        with self.changing:
            if self.is_over.is_set():
                raise DidNotHappen(f"the job was stopped before {node} started")
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
            if self.is_shown:
                say(coming.node, coming.text)
        else:
            self.open.remove(coming)

    def tell(self, text: str) -> None:
        if self.is_shown:
            tell(text)

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

    def is_ready(self, *nodes: str, since: float = 0.0) -> None:
        """Wait until these nodes have standbys, if they are to have some."""
        for node in nodes if self.way.has_standbys else ():
            self.sees(f"{node} had a standby", READY, since, node=node)

    def suffers(self, what: str, do: Callable[[], float], words: str, size: int, charge: int) -> Row:
        """Cause a fault; wait for the launcher's line about it, for `size` workers, and for their next epoch.

        `do` returns the time from which on the training stands still.
        """
        before = matches(self.lines, WORKER)[-1]
        with self.turn:
            at = do()
            noticed = self.sees(f"{HOST} noticed: {what}", status(words), at, node=HOST)
            up = self.sees(f"{size} workers ran after: {what}", WORKER, at, size=str(size))
            on = self.sees(f"an epoch was done after: {what}", EPOCH, up.at)
        spent = int(up.groups["restarts"]) - int(before.groups["restarts"])
        return Row(what, at, noticed, up.at, on.at, spent, charge)

    def stop(self) -> None:
        """Stop the agents that still run; an agent that must be killed takes its workers along. Keep what they said."""
        with self.changing:
            self.is_over.set()
        for agent in self.agents.values():
            agent.terminate()
        for agent in self.agents.values():
            try:
                agent.wait(timeout=10)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()
        said = (f"{line.at:.2f} {line.node} | {line.text}\n" for line in self.lines)
        (self.directory / "lines").write_text("".join(said))


def play(job: Job) -> list[Row]:
    job.start(HOST)
    job.start(OTHER)
    job.sees("two nodes ran", WORKER, size="2")
    job.trains(epochs=2)
    job.is_ready(HOST, OTHER)

    worker = matches(job.lines, WORKER, node=HOST)[-1].groups
    pid = int(worker["pid"])
    kill_it = partial(kill, job, pid, f"the worker on {HOST}")
    rows = [job.suffers("a worker killed", kill_it, rf"pid {pid}\b", size=2, charge=1)]
    job.is_ready(HOST, OTHER, since=rows[-1].at)
    job.trains(epochs=1)

    lost = job.agents[OTHER]
    kill_it = partial(kill, job, lost.pid, f"the agent on {OTHER}; its worker dies with it")
    rows += [job.suffers(f"a node killed: {OTHER}", kill_it, r"\b(?:lost|without)\b", size=1, charge=0)]
    lost.wait()
    job.is_ready(HOST, since=rows[-1].at)

    rows += [job.suffers(f"{OTHER} joins again", partial(join, job), OTHER, size=2, charge=0)]
    job.trains(epochs=1)
    return rows


def played(job: Job) -> tuple[list[Row], list[str]]:
    """Play the story, and stop its job: the other one needs the machine. Return its account, too."""
    rows = play(job)
    job.stop()
    job.tell("this job is stopped; the other one plays the story to its end")
    with job.turn:
        return rows, account(job.traces)


def account(traces: Path) -> list[str]:
    """Return where the time of a job's nodes went, in the words of `elastic goodput`: its line, and the dearest events.

    Raises DidNotHappen.
    """
    command = [sys.executable, "-m", "elastic", "goodput", *sorted(map(str, traces.glob("*.ndjson")))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if ended.returncode:
        raise DidNotHappen(f"elastic goodput ended with {ended.returncode}: {ended.stderr.strip()}")
    heads, _, events = ended.stdout.rstrip().split("\n\n")
    share = " ".join(heads.splitlines()[1].split())
    return [*(f"  {line}" for line in folded(share.split(" "))), *events.splitlines()]


def kill(job: Job, pid: int, what: str) -> float:
    job.tell(f"$ kill -9 {pid}    # {what}")
    at = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    return at


def join(job: Job) -> float:
    """Start the other node again. The training goes on until the node that runs makes room for it."""
    at = time.monotonic()
    job.start(OTHER)
    return job.sees(f"{HOST} made room", status("room"), at, node=HOST).at


def accuracy(job: Job) -> float:
    """Return the share of the held-out digits that the last epoch recognised."""
    return float(matches(job.lines, EPOCH)[-1].groups["accuracy"])


def complaints_about(job: Job, rows: Sequence[Row]) -> list[str]:
    """Return what is wrong with a story that was told to its end, and stopped."""
    codes = {node: agent.wait(timeout=10) for node, agent in job.agents.items()}
    pids = [match.groups["pid"] for match in matches(job.lines, WORKER)]
    return [
        *(
            f"{job.way.name}, {row.what}: not {row.charge} restarts charged"
            for row in rows
            if row.charged != row.charge
        ),
        *(
            f"{job.way.name}, the agent on {node} ended with exit code {code}"
            for node, code in codes.items()
            if code not in STOPPED
        ),
        *(f"worker {pid} still runs" for pid in pids if Path(f"/proc/{pid}/exe").exists()),
        *([f"{job.way.name}, the accuracy, {accuracy(job)}, is below {ENOUGH}"] if accuracy(job) < ENOUGH else []),
    ]


def table(rows: Sequence[Sequence[Row]]) -> list[str]:
    """Return for each fault the launcher's own line about it, and a line for each way. `rows`: of each way, by fault."""
    heads = ("noticed", "workers up", "trained on", "restarts")
    lines = [f"  {'':<28}" + "".join(f"{head:>12}" for head in heads)]
    for ways in zip(*rows, strict=True):
        lines += [f"  {ways[0].what}", f"      {ways[0].noticed.groups['said']}"]
        for way, row in zip(WAYS, ways, strict=True):
            after = [f"{at - row.at:.1f} s" for at in (row.noticed.at, row.up_at, row.on_at)]
            lines.append(f"    {way.name:<26}" + "".join(f"{cell:>12}" for cell in (*after, row.charged)))
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
    began_at = time.monotonic()
    for signum in HANDLED:
        signal.signal(signum, lambda signum, _: sys.exit(128 + signum))
    tell(f"the job {WAYS[0].name}; the job {WAYS[1].name} suffers the same beside it, off the screen:")
    turn = threading.Lock()
    with ExitStack() as stack:
        jobs = [
            Job(way, Path(tempfile.mkdtemp(prefix="elastic_demo_")), kept_port(stack), began_at + LIMIT_S, shown, turn)
            for way, shown in zip(WAYS, (True, False), strict=True)
        ]
        told = demonstrate(jobs)
    if told:
        reached = ", ".join(f"{accuracy(job):.1%} {job.way.name}" for job in jobs)
        print("", *table([rows for rows, _ in told]), sep="\n")
        for job, (_, lines) in zip(jobs, told, strict=True):
            print(f"\n  where the nodes' time went {job.way.name} (elastic goodput)", *lines, sep="\n")
        print(f"\n  of the held-out digits recognised: {reached}", flush=True)
    tell(f"all of it in {time.monotonic() - began_at:.0f} s")
    return 0 if told else 1


def kept_port(stack: ExitStack) -> int:
    """Return a port that others do not get, until the first node of a job serves its store there."""
    holder = stack.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("localhost", 0))
    return int(holder.getsockname()[1])


def demonstrate(jobs: Sequence[Job]) -> list[tuple[list[Row], list[str]]]:
    """Play the story in these jobs at the same time, and return what was seen in each, and its account. If one goes wrong,
    say how and return nothing."""
    complaints, told = ["it was interrupted"], list[tuple[list[Row], list[str]]]()
    with ThreadPoolExecutor(len(jobs)) as pool:
        stories = [pool.submit(played, job) for job in jobs]
        try:
            wait(stories, return_when=FIRST_EXCEPTION)
            complaints = [str(story.exception()) for story in stories if story.done() and story.exception()]
        finally:
            handlers = {signum: signal.signal(signum, signal.SIG_IGN) for signum in HANDLED}  # stopping is bounded
            for job in jobs:
                job.stop()
            if not complaints:
                told = [story.result() for story in stories]
                complaints = [
                    text for job, (rows, _) in zip(jobs, told, strict=True) for text in complaints_about(job, rows)
                ]
            for complaint in complaints:
                tell(f"FAILED: {complaint}")
            for job in jobs:
                if complaints:
                    tell(f"what the job {job.way.name} said is kept under {job.directory}")
                else:
                    shutil.rmtree(job.directory)
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
    return [] if complaints else told


if __name__ == "__main__":
    sys.exit(main())
