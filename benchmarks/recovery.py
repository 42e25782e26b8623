"""Recovery as a user feels it: from the death of a worker, or of a node, to the first line after `import torch`.

    python benchmarks/recovery.py [--runs N] [--workers 2,8] [--agents 1,2] [--imports MODULE]
                                  [--only death|loss|name|join|drain|call|memory|slowdown]

`standby` is `elastic launch --standby`, `elastic` the same without the option. Each job is broken as often as there are
runs, and the launchers' jobs run one after the other. `loss` is that of the last of three agents with one worker each: the
agent alone is killed (its reaper kills the rest), or all its processes, or its network is cut (it runs in a namespace of its
own, where the user is root and has `ip`). `links` and `silence` are `elastic launch --standby` with links between the agents
and without them; a replacement comes after each loss. `name` kills one of two agents of a job
of fixed size: how soon the line of the other one, and the register in the store, name it. `drain` takes the last of three
agents out by its signal: how long the workers of the others stand still. `call` kills one of two agents whose ranks are
wrapped (`--restart-scope=rank`), and replaces it: how soon the others are in their function again. With standbys a job is
broken only when they are ready again. Stamps are the workers' own (CLOCK_MONOTONIC). The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from measuring import BIN, HERE, Bar, Measure, Samples, all_hold, facts, load, stage, stop_on_signals, table
from nodes import free_port

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.rendezvous import Settings, Token

PROGRAM = HERE / "programs" / "imports_torch.py"
COMPUTES = HERE / "programs" / "computes.py"
ENTERS = HERE / "programs" / "enters.py"
LEAVES = HERE / "programs" / "leaves_on_notice.py"
LAUNCHERS = ("standby", "elastic", "torchrun")
LINKED = {"links": "true", "silence": "false"}
NODES = 3
LOSSES = {
    "agent": "SIGKILL of an agent",
    "node": "SIGKILL of all processes of a node",
    "network": "cut of a node's network (heartbeats decide)",
}
NAMESPACE = f"el-b{os.getpid()}"
HERE_ADDRESS, THERE_ADDRESS = "10.213.57.1", "10.213.57.2"
RATIOS = (("elastic", "standby"), ("torchrun", "standby"))
RUN_TIMEOUT_S = 300
SILENCE_MS = 1_000 * (1.5 * Settings().ttl + 0.5)
"""A node whose silence alone shows its loss is to be replaced by then."""
SETTLE_S = 1.0
"""A job without standbys is broken so long after all its workers are up."""
RECVMSG = "47"
"""The system call in which a standby waits that is ready (x86-64)."""


class Job:
    """The agents of one job on this host, and the lines of all their workers."""

    def __init__(
        self,
        launcher: str,
        nnodes: str,
        workers: int,
        restarts: int,
        folder: Path,
        program: Path,
        first: int,
        apart: bool,
        options: Sequence[str],
    ) -> None:
        """`workers` of all agents together, of which the `first` are started now; the last `apart`, on a host of its own."""
        self._launcher = launcher
        self._workers = workers
        self._folder = folder
        read, write = os.pipe()
        self._lines = os.fdopen(read, "r")
        os.mkfifo(folder / "break")
        self._write = write
        self._environment = {**os.environ, "BENCHMARK_STAGE": str(folder)}
        each = workers // int(nnodes.rpartition(":")[2])
        self._port = free_port()
        self._apart = first - 1 if apart else -1
        endpoint = f"{HERE_ADDRESS if apart else 'localhost'}:{self._port}"
        self._command = partial(command, launcher, nnodes, each, restarts, endpoint, program, options)
        self._agents: list[subprocess.Popen[bytes]] = []
        for _ in range(first):
            self.start()

    def start(self) -> None:
        """Start one more agent."""
        null = subprocess.DEVNULL
        place, said = len(self._agents), self._write if self._launcher in LINKED else null
        command = self._command(place)
        if self._apart >= 0:
            command[2:2] = [f"--local-addr={THERE_ADDRESS if place == self._apart else HERE_ADDRESS}"]
        if place == self._apart:
            command[:0] = ["ip", "netns", "exec", NAMESPACE]
        self._agents.append(
            subprocess.Popen(command, stdin=null, stdout=self._write, stderr=said, env=self._environment)
        )

    def says(self, word: str, times: int) -> float:
        """Wait for so many lines with this word; return the stamp of the last."""
        last = 0.0
        while times:
            line = self._lines.readline()
            if not line:
                raise RuntimeError(f"{self._launcher}: the job ended before its next {word!r}")
            found, _, at = line.partition(" ")
            if found == word:
                last, times = max(last, float(at)), times - 1
        return last

    def hears(self, text: str) -> float:
        """Wait for a line with this text; return when it came."""
        while text not in (line := self._lines.readline()):
            if not line:
                raise RuntimeError(f"{self._launcher}: the job ended before its next {text!r}")
        return time.monotonic()

    def breaks(self) -> float:
        """Kill a worker; return the seconds until the last worker of the next round was up."""
        (self._folder / "break").write_text("now")
        died_at = self.says("death", 1)
        return self.says("up", self._workers) - died_at

    def loses(self, what: str) -> float:
        """Kill the last agent, or all its processes, or cut its network; return the seconds until the workers of the others
        are up. Then replace it."""
        agent = self._agents.pop()
        processes = [agent.pid, *(children(agent.pid) if what != "agent" else ())]
        died_at = time.monotonic()
        if what == "network":
            ip("link", "set", NAMESPACE, "down")
        else:
            kill(processes)
        took = self.says("up", len(self._agents)) - died_at
        if what == "network":
            kill(processes)
            ip("link", "set", NAMESPACE, "up")
        agent.wait()
        self.start()
        self.says("up", len(self._agents))
        return took

    def drains(self) -> float:
        """Drain the last agent; return the seconds from the stop of the first worker until those of the others are up. Then
        replace it."""
        agent = self._agents.pop()
        agent.send_signal(signal.SIGUSR1)
        stopped_at = self.says("stopped", 1)
        took = self.says("up", len(self._agents)) - stopped_at
        agent.wait()
        self.start()
        self.says("up", len(self._agents))
        return took

    def enters(self, each: int) -> tuple[float, float]:
        """Kill the last agent; return the seconds until the ranks of the other one are in their function again. Then replace
        it; return the seconds from the first interruption until all ranks are in."""
        agent = self._agents.pop()
        died_at = time.monotonic()
        agent.kill()
        lost = self.says("in", each) - died_at
        agent.wait()
        self.start()
        out_at = self.says("out", 1)
        return lost, self.says("in", 2 * each) - out_at

    def names(self) -> tuple[float, float]:
        """Kill the last agent; return the seconds until the other one's line names it, and until the register does. Then
        replace it."""
        backend = TCPStoreBackend(Address("localhost", self._port), "b", SystemClock())
        state = backend.get().state
        assert state
        with ThreadPoolExecutor(1) as pool:
            named = pool.submit(named_at, backend, state.token)
            agent = self._agents.pop()
            died_at = time.monotonic()
            agent.kill()
            agent.wait()
            said_at = self.hears(" lost ")
            stands_at = named.result()
        backend.close()
        self.start()
        return said_at - died_at, stands_at - died_at

    def settles(self, standbys: int | None = None) -> None:
        """Wait until the next break may come: there is a standby for each worker, or so many."""
        if self._launcher not in ("standby", *LINKED):
            time.sleep(SETTLE_S)
            return
        while len(self.ready()) < (standbys or self._workers):
            time.sleep(0.05)

    def standbys(self) -> list[int]:
        """Return the process ids of all that were executed as standbys, and have not become a worker that computes."""
        found = [pid for agent in self._agents for pid in children(agent.pid) if is_standby(pid)]
        return [pid for pid in found if not holds(pid, self._folder / "chunks")]

    def chunks(self) -> list[tuple[float, float]]:
        """Return when each chunk of work began, and how long it took."""
        lines = [line.split() for line in (self._folder / "chunks").read_text().splitlines()[:-1]]
        return [(float(began_at), float(span)) for began_at, span in lines]

    def ready(self) -> list[int]:
        """Return the process ids of the standbys that wait for a rank."""
        return [pid for pid in self.standbys() if read(f"/proc/{pid}/syscall").startswith(f"{RECVMSG} ")]

    def close(self) -> None:
        for agent in self._agents:
            agent.kill()
            agent.wait()
        os.close(self._write)
        self._lines.close()


def command(
    launcher: str,
    nnodes: str,
    each: int,
    restarts: int,
    endpoint: str,
    program: Path,
    more: Sequence[str],
    place: int,
) -> list[str]:
    options = [*more, f"--nnodes={nnodes}", f"--nproc-per-node={each}", f"--max-restarts={restarts}"]
    meeting = [f"--rdzv-endpoint={endpoint}", "--rdzv-id=b"] if nnodes != "1" else ["--standalone"]
    if launcher == "torchrun":
        backend = ["--rdzv-backend=c10d", "--rdzv-conf=last_call_timeout=1"] if nnodes != "1" else []
        return [str(BIN / "torchrun"), *options, *meeting, *backend, str(program)]
    host = ["--last-call=0", f"--rdzv-conf=is_host={'false' if place else 'true'}"] if nnodes != "1" else []
    if launcher in LINKED:
        host = ["--last-call=1000", f"{host[1]},peer_links={LINKED[launcher]}"]
    standby = ["--standby"] if launcher in ("standby", *LINKED) else []
    host += ["--drain-signal=USR1"] if nnodes != "1" else []
    return [str(BIN / "elastic"), "launch", *options, *meeting, *host, *standby, str(program)]


def named_at(backend: TCPStoreBackend, token: Token) -> float:
    """Wait until the register names a lost node; return when that came."""
    while True:
        state = backend.wait_for_change(token, math.inf).state
        assert state
        if state.ended and state.ended.lost:
            return time.monotonic()
        token = state.token


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]


def is_standby(pid: int) -> bool:
    """Return True for a process that was executed as a standby, though it may have become a worker."""
    return "ELASTIC_STANDBY=" in read(f"/proc/{pid}/environ")


def holds(pid: int, file: Path) -> bool:
    """Return True if this process has the file open."""
    try:
        return any(os.readlink(each) == str(file) for each in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def read(file: str) -> str:
    """Return a file of /proc; nothing of what is gone."""
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


@contextmanager
def job(
    launcher: str,
    nnodes: str,
    workers: int,
    restarts: int,
    program: Path = PROGRAM,
    first: int = 1,
    imports: str = "torch",
    apart: bool = False,
    options: Sequence[str] = (),
) -> Iterator[Job]:
    with TemporaryDirectory() as folder, other_host() if apart else nullcontext():
        written = Path(folder, "program.py")
        written.write_text(program.read_text().replace("import torch  #", f"import {imports}  #"))
        made = Job(launcher, nnodes, workers, restarts, Path(folder), written, first, apart, options)
        try:
            yield made
        finally:
            made.close()
            signal.alarm(0)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def other_host() -> Iterator[None]:
    """A network namespace, and a pair of ends that joins it to this one."""
    ip("netns", "add", NAMESPACE)
    try:
        ip("link", "add", NAMESPACE, "type", "veth", "peer", "name", "eth0", "netns", NAMESPACE)
        ip("address", "add", f"{HERE_ADDRESS}/30", "dev", NAMESPACE)
        ip("link", "set", NAMESPACE, "up")
        ip("-n", NAMESPACE, "address", "add", f"{THERE_ADDRESS}/30", "dev", "eth0")
        ip("-n", NAMESPACE, "link", "set", "eth0", "up")
        ip("-n", NAMESPACE, "link", "set", "lo", "up")
        yield
    finally:
        subprocess.run(["ip", "link", "delete", NAMESPACE], check=False)  # else its name stays for a while
        ip("netns", "delete", NAMESPACE)


# --- the measures


def deaths(launcher: str, agents: int, workers: int, given: argparse.Namespace) -> list[float]:
    """Milliseconds; the first break of a job does not count."""
    times, runs = [], given.runs
    with job(launcher, str(agents), workers, runs + 1, first=agents, imports=given.imports) as made:
        signal.alarm(RUN_TIMEOUT_S)
        made.says("up", workers)
        for _ in range(runs + 1):
            made.settles()
            signal.alarm(RUN_TIMEOUT_S)
            times.append(1000 * made.breaks())
    print(f"{launcher}, {agents} agents, {workers} workers: {median(times[1:]):.0f} ms", file=sys.stderr, flush=True)
    return times[1:]


def measure_deaths(given: argparse.Namespace) -> Iterator[Measure]:
    for each in given.agents:
        for size in given.workers:
            samples: Samples = {launcher: deaths(launcher, each, size, given) for launcher in given.launchers}
            bars = [Bar("≤ 250 ms", lambda times: times["standby"] <= 250)] if size == 2 else []
            if "elastic" in samples:
                bars.insert(0, Bar("≤ 1/20 of elastic", lambda times: times["standby"] <= times["elastic"] / 20))
            title = f"death → `import {given.imports}` done, {each} agent{'s' if each > 1 else ''}, {size} workers"
            yield Measure(title, "ms", samples, tuple(bars))


def losses(launcher: str, what: str, given: argparse.Namespace) -> list[float]:
    """Milliseconds; the first loss of a job does not count."""
    times = []
    nnodes, is_cut = f"{NODES - 1}:{NODES}", what == "network"
    with job(launcher, nnodes, NODES, 1, first=NODES, imports=given.imports, apart=is_cut) as made:
        signal.alarm(RUN_TIMEOUT_S)
        made.says("up", NODES)
        for _ in range(given.runs + 1):
            made.settles()
            signal.alarm(RUN_TIMEOUT_S)
            times.append(1000 * made.loses(what))
    print(f"{launcher}, {LOSSES[what]}: {median(times[1:]):.0f} ms", file=sys.stderr, flush=True)
    return times[1:]


def measure_losses(given: argparse.Namespace) -> Iterator[Measure]:
    for what, title in LOSSES.items():
        if what == "network" and (os.geteuid() or not shutil.which("ip")):
            print("nobody but root makes a network: its loss was not measured", file=sys.stderr)
            continue
        samples: Samples = {launcher: losses(launcher, what, given) for launcher in LINKED}
        soon = (Bar("≤ 250 ms", lambda times: times["links"] <= 250),) if what != "network" else ()
        yield Measure(f"{title} → `import torch` done on the others", "ms", samples, soon)


def measure_names(given: argparse.Namespace) -> Iterator[Measure]:
    """A job of two nodes loses one and waits for another; the first loss does not count."""
    with job("links", "2", 2, 1, first=2, imports=given.imports) as made:
        times = []
        for _ in range(given.runs + 1):
            signal.alarm(RUN_TIMEOUT_S)
            made.says("up", 2)
            times.append(made.names())
    said, stands = ([1000 * each[place] for each in times[1:]] for place in (0, 1))
    bar = Bar("≤ 100 ms", lambda times: times["links"] <= 100)
    yield Measure("SIGKILL of an agent → the other's line names it", "ms", {"links": said}, (bar,))
    yield Measure("SIGKILL of an agent → the store names it", "ms", {"links": stands}, (bar,))


def joins(launcher: str, given: argparse.Namespace) -> list[float]:
    """Milliseconds from the stop of the running worker to the import's end on both nodes; each in a job of its own."""
    times = []
    for _ in range(given.runs):
        with job(launcher, "1:2", 2, 1, imports=given.imports) as made:
            signal.alarm(RUN_TIMEOUT_S)
            made.says("up", 1)
            made.settles(1)
            made.start()
            stopped_at = made.says("stopped", 1)
            times.append(1000 * (made.says("up", 2) - stopped_at))
    print(f"{launcher}, a node joins: {median(times):.0f} ms", file=sys.stderr, flush=True)
    return times


def measure_joins(given: argparse.Namespace) -> Iterator[Measure]:
    samples: Samples = {launcher: joins(launcher, given) for launcher in given.launchers if launcher != "torchrun"}
    bar = Bar("≤ 500 ms", lambda times: times["standby"] <= 500)
    yield Measure("a node joins: the running world stands still for", "ms", samples, (bar,))


def drains(launcher: str, given: argparse.Namespace) -> list[float]:
    """Milliseconds; the first drain of a job does not count."""
    times, nnodes = [], f"{NODES - 1}:{NODES}"
    with job(launcher, nnodes, NODES, 1, LEAVES, first=NODES, imports=given.imports) as made:
        signal.alarm(RUN_TIMEOUT_S)
        made.says("up", NODES)
        for _ in range(given.runs + 1):
            made.settles()
            signal.alarm(RUN_TIMEOUT_S)
            times.append(1000 * made.drains())
    print(f"{launcher}, a node is drained: {median(times[1:]):.0f} ms", file=sys.stderr, flush=True)
    return times[1:]


def measure_drains(given: argparse.Namespace) -> Iterator[Measure]:
    samples: Samples = {launcher: drains(launcher, given) for launcher in given.launchers if launcher != "torchrun"}
    bar = Bar("≤ 500 ms", lambda times: times["standby"] <= 500)
    yield Measure("a node is drained: the others stand still for", "ms", samples, (bar,))


def measure_calls(given: argparse.Namespace) -> Iterator[Measure]:
    """Two agents with two wrapped ranks each; the first loss does not count."""
    times = dict[str, list[tuple[float, float]]]()
    for launcher in LINKED:
        with job(launcher, "1:2", 4, 1, ENTERS, first=2, options=["--restart-scope=rank"]) as made:
            signal.alarm(RUN_TIMEOUT_S)
            made.says("in", 4)
            times[launcher] = []
            for _ in range(given.runs + 1):
                signal.alarm(RUN_TIMEOUT_S)
                made.settles(4)
                times[launcher].append(made.enters(2))
    lost, back = ({name: [1000 * one[place] for one in each[1:]] for name, each in times.items()} for place in (0, 1))
    soon = Bar("≤ 250 ms", lambda medians: medians["links"] <= 250)
    in_time = Bar(f"≤ {SILENCE_MS:g} ms", lambda medians: medians["silence"] <= SILENCE_MS)
    yield Measure("SIGKILL of an agent → the other's ranks are in their function again", "ms", lost, (soon, in_time))
    still = Bar("≤ 500 ms", lambda medians: medians["links"] <= 500)
    yield Measure("it comes back: from the first interruption until all ranks are in", "ms", back, (still,))


def measure_memory(given: argparse.Namespace) -> Iterator[Measure]:
    """Of standbys that are ready: what they alone hold, and their share of what several hold."""
    with job("standby", "1", given.workers[0], 1, imports=given.imports) as made:
        signal.alarm(RUN_TIMEOUT_S)
        made.settles()
        sizes = [memory(pid) for pid in made.ready()]
    for name, place in (("private", 0), ("proportional share", 1)):
        yield Measure(f"memory of a standby, {name}", "MiB", {"standby": [size[place] for size in sizes]})


def measure_slowdown(given: argparse.Namespace) -> Iterator[Measure]:
    """One worker computes beside a standby that imports, and as long beside one that waits. A core is free."""
    spans: list[tuple[float, float]] = []
    with job("standby", "1", 1, 1, COMPUTES) as made:
        made.says("up", 1)
        for _ in range(given.runs):
            signal.alarm(RUN_TIMEOUT_S)
            made.settles()
            if spans:
                time.sleep(spans[-1][1] - spans[-1][0])
            (standby,) = made.ready()
            os.kill(standby, signal.SIGKILL)
            while made.standbys() in ([], [standby]):
                time.sleep(0.005)
            began_at = time.monotonic()
            made.settles()
            spans.append((began_at, time.monotonic()))
        time.sleep(spans[-1][1] - spans[-1][0])
        chunks = made.chunks()
    slower = [100 * (mean(chunks, begin, end) / mean(chunks, end, 2 * end - begin) - 1) for begin, end in spans]
    bar = Bar("≤ 3 %", lambda shares: shares["standby"] <= 3)
    yield Measure("a chunk of work beside a standby that imports: longer by", "%", {"standby": slower}, (bar,))


def mean(chunks: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Return how long a chunk took on average that ran within this span."""
    spans = [span for began_at, span in chunks if begin <= began_at and began_at + span <= end]
    return sum(spans) / len(spans)


def memory(pid: int) -> tuple[float, float]:
    """Return the private memory and the proportional share, in MiB."""
    lines = [line.split() for line in read(f"/proc/{pid}/smaps_rollup").splitlines()[1:]]
    sizes = {words[0]: int(words[1]) / 1024 for words in lines}
    return sizes["Private_Clean:"] + sizes["Private_Dirty:"], sizes["Pss:"]


MEASURES: Mapping[str, Callable[[argparse.Namespace], Iterator[Measure]]] = {
    "death": measure_deaths,
    "loss": measure_losses,
    "name": measure_names,
    "join": measure_joins,
    "drain": measure_drains,
    "call": measure_calls,
    "memory": measure_memory,
    "slowdown": measure_slowdown,
}


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def words(text: str) -> list[str]:
    return text.split(",")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="counted deaths of each job [10]")
    parser.add_argument("--agents", type=numbers, default=[1, 2], metavar="N,...", help="[1,2]")
    parser.add_argument("--workers", type=numbers, default=[2], metavar="N,...", help="of all agents together [2]")
    parser.add_argument("--imports", default="torch", metavar="MODULE", help="what the workers import [torch]")
    parser.add_argument(
        "--launchers", type=words, default=LAUNCHERS, metavar="NAME,...", help="[standby,elastic,torchrun]"
    )
    parser.add_argument("--only", choices=MEASURES, metavar="NAME", help=f"one of {', '.join(MEASURES)}")
    given = parser.parse_args()
    with stage():
        print(facts())
        print(f"{given.runs} counted deaths in each job, after one that does not count\n", flush=True)
        measured = (run for name, run in MEASURES.items() if given.only in (None, name))
        measures = [done for run in measured for done in run(given)]
        print("\n".join(table(measures, (*LAUNCHERS, *LINKED), RATIOS)))
        print(f"\nload afterwards {load()}")
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
