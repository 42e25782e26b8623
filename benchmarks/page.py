"""How soon the web page of `elastic status --http` shows what happens to a job, in a real Chromium without a window.

    python benchmarks/page.py [--runs N]

Three agents on this host meet in a TCPStore; a browser has the page open. In each run a worker is killed, an agent is
killed, an agent comes in its place, and that one is drained by its signal. `cause` is from the kill, the start or the signal
until the page shows it, so the start of a new agent counts; `register` is from the moment at which the store has announced
it to this process. Both stamps are of this host's clock, the page's by `Date.now()`. The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from uuid import uuid4

from attrs import define, field
from measuring import BIN, HERE, Bar, Measure, all_hold, facts, load, stage, stop_on_signals, table
from nodes import free_port
from stores import Store, tcpstore

from elastic.adapters.store.port import Backend, StoreError
from elastic.core.rendezvous import RendezvousState

sys.path.append(str(HERE.parent / "tests"))
from chromium import Tab, tab

SLEEPS = HERE / "programs" / "sleeps.py"
BAR_MS = 1_000.0
TIMEOUT_S = 60.0
NODES = 3
EVENTS = ("a worker fails", "a node is lost", "a node returns", "a node is drained")


@define
class Job:
    """The agents of one job, and when the store announced each of its states to us."""

    store: Store
    run_id: str = field(factory=lambda: uuid4().hex[:8])
    agents: dict[str, subprocess.Popen[bytes]] = field(factory=dict)
    workers: dict[str, int] = field(factory=dict)
    """The process of the last worker of each agent."""
    states: list[tuple[float, RendezvousState]] = field(factory=list)

    def starts(self, name: str) -> None:
        command = [
            *(str(BIN / "elastic"), "launch", f"--nnodes={NODES - 1}:{NODES}", "--last-call=1000", "--status=off"),
            *("--max-restarts=10000", "--drain-signal=USR1", "--drain-deadline=6", "--grace=1"),
            *(f"--rdzv-endpoint={self.store.address}", "--rdzv-conf=is_host=false,upscale_after=0.1"),
            *(f"--rdzv-id={self.run_id}", f"--node-id={name}", str(SLEEPS)),
        ]
        self.agents[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def hears(self, *names: str) -> None:
        """Wait for the next worker of each of these agents."""
        for name in names:
            said = self.agents[name].stdout
            assert said
            while not (line := said.readline()).startswith(b"worker "):
                assert line, f"{name} has ended"
            self.workers[name] = int(line.split()[1])

    def ends(self, name: str, signum: int | None = None) -> None:
        """Wait until this agent has ended, by a signal if one is given."""
        if signum is not None:
            self.agents[name].send_signal(signum)
        self.agents[name].wait(TIMEOUT_S)

    def follows(self, backend: Backend) -> None:
        """Keep each state of the register, until the job is over."""
        state = backend.get().state
        while state is None or not state.closed:
            try:
                state = backend.wait_for_change(state.token if state else None, time.monotonic() + 1).state
            except StoreError:  # the benchmark is over
                return
            if state and (not self.states or self.states[-1][1].token != state.token):
                self.states.append((time.time(), state))

    def at(self, claim: Callable[[RendezvousState], bool], since: float) -> float:
        """Wait until this holds in a state that was announced since; return when it was announced."""
        ends_at = time.monotonic() + TIMEOUT_S
        while time.monotonic() < ends_at:
            for at, state in self.states:
                if at >= since and claim(state):
                    return at
            time.sleep(0.005)
        raise SystemExit("the job does not do what is measured")

    @property
    def round(self) -> int:
        return self.states[-1][1].round


def says(text: str, where: str) -> str:
    return f"document.querySelector({json.dumps(where)}).innerText.includes({json.dumps(text)})"


def shown_at(page: Tab, claim: str) -> float:
    """Wait until the page shows this; return when it did."""
    return float(page.until(f"({claim}) && Date.now()")) / 1_000


def runs_in(count: int, round: int) -> Callable[[RendezvousState], bool]:
    return lambda state: state.complete and state.round >= round and len(state.members) == count


def measured(job: Job, page: Tab) -> Iterator[tuple[str, float, float]]:
    """Yield the events of one run, with the milliseconds since the cause and since the register had it."""

    def seen(began: float, claim: Callable[[RendezvousState], bool], shown: str) -> tuple[float, float]:
        at = shown_at(page, shown)
        return 1_000 * (at - began), 1_000 * max(at - job.at(claim, began), 0.0)

    def settled(nodes: int) -> None:
        """Wait until so many nodes run, and the page has shown all there is."""
        job.at(runs_in(nodes, job.round), 0)
        page.until(says(f"round {job.round}: {nodes} nodes running", "#sentence"))
        time.sleep(1.5)

    settled(NODES)
    over, began = job.round, time.time()
    os.kill(job.workers["b"], signal.SIGKILL)
    yield EVENTS[0], *seen(began, lambda state: state.round > over, says(f"round {over} ended: failed", "#events"))

    job.hears("a", "b", "c")
    settled(NODES)
    over, began = job.round, time.time()
    job.ends("c", signal.SIGKILL)
    yield EVENTS[1], *seen(began, lambda state: state.round > over, says(f"round {over} ended: lost", "#events"))

    job.hears("a", "b")
    settled(NODES - 1)
    over, began = job.round, time.time()
    job.starts("c")
    running = says(f"round {over + 1}: {NODES} nodes running", "#sentence")
    yield EVENTS[2], *seen(began, runs_in(NODES, over + 1), running)

    job.hears("a", "b", "c")
    settled(NODES)
    before = page.run("document.querySelector('#events').innerText.split('drained: ').length")
    began = time.time()
    job.agents["c"].send_signal(signal.SIGUSR1)
    events = "document.querySelector('#events').innerText.split('drained: ').length"
    drained = f"{events} > {before}"
    yield EVENTS[3], *seen(began, lambda state: bool(state.draining), drained)

    job.ends("c")
    job.hears("a", "b")
    settled(NODES - 1)
    job.starts("c")
    job.hears("a", "b", "c")


@contextmanager
def browsed(job: Job, folder: Path) -> Iterator[Tab]:
    """The job's page in a browser."""
    command = [str(BIN / "elastic"), "status", f"--rdzv-endpoint={job.store.address}", f"--rdzv-id={job.run_id}"]
    server = subprocess.Popen([*command, f"--http={free_port()}"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        with tab(folder) as page:
            page.opens(address)
            yield page
    finally:
        server.kill()
        server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="counted runs [10]")
    given = parser.parse_args()
    print(facts(), flush=True)
    took = {event: {"cause": list[float](), "register": list[float]()} for event in EVENTS}
    with stage(), tcpstore() as store, TemporaryDirectory() as folder:
        job = Job(store)
        for name in "abc":
            job.starts(name)
        backend = store.client(job.run_id)
        Thread(target=job.follows, args=(backend,), daemon=True).start()
        job.hears("a", "b", "c")
        with browsed(job, Path(folder) / "browser") as page:
            for count in range(given.runs + 1):
                for event, cause, register in measured(job, page):
                    print(f"{event}: {cause:.0f} ms, {register:.0f} ms after the register", file=sys.stderr, flush=True)
                    if count:
                        took[event]["cause"].append(cause)
                        took[event]["register"].append(register)
    bar = Bar(f"≤ {BAR_MS:g} ms after the register", lambda medians: medians["register"] <= BAR_MS)
    measures = [Measure(event, "ms", samples, (bar,)) for event, samples in took.items()]
    print("\n".join(table(measures, ("cause", "register"), ())))
    print(f"\nload afterwards {load()}")
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
