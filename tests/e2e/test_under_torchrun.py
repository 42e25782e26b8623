"""`torchrun --rdzv-backend=elastic`: real jobs of torch's own launcher, whose agents meet by our protocol."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from etcds import Cluster, skip_without_etcd
from jobs import STAY, codes, end, kill, run, worlds
from launches import PROGRAMS, TIMEOUT_S, Launch, launcher
from processes import dies

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.world import Why

COMMAND = (str(Path(sys.executable).with_name("torchrun")),)
TORCHRUN = (sys.executable, "-c", "import quick_torch, torch.distributed.run as run; run.main()")
"""What the command does, with the quicker import."""
CONF = "keep_alive_interval=0.3,keep_alive_max_attempt=6,upscale_after=0.2,last_call_timeout=0.1"
Torchrun = Callable[..., Launch]


@pytest.fixture
def run_id() -> str:
    return f"job-{uuid4().hex[:8]}"


@pytest.fixture
def torchrun(nothing_left: str, tmp_path: Path, shared_store: Address, run_id: str) -> Iterator[Torchrun]:
    """An agent of one job."""
    with launcher(tmp_path) as launch:

        def start(
            *arguments: str | Path,
            endpoint: str = str(shared_store),
            conf: str = f",{CONF}",
            command: tuple[str, ...] = TORCHRUN,
        ) -> Launch:
            meeting = (f"--rdzv-endpoint={endpoint}", f"--rdzv-conf=is_host=false{conf}", f"--rdzv-id={run_id}")
            return launch.command(*command, "--rdzv-backend=elastic", *meeting, "--monitor-interval=0.05", *arguments)

        yield start


def why_ended(store: Address, run_id: str) -> Why | None:
    """The round before the one that stands."""
    client = TCPStoreBackend(store, run_id, SystemClock())
    try:
        state = client.get().state
    finally:
        client.close()
    return state.ended.why if state and state.ended else None


def refuses_a_drain(store: Address, run_id: str) -> bool:
    """A notice would have no effect, and newcomers would wait until its node has left."""
    drain = (sys.executable, "-m", "elastic", "drain", os.uname().nodename)
    where = (f"--rdzv-endpoint={store}", f"--rdzv-id={run_id}")
    refused = subprocess.run([*drain, *where], check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    said = "runs under torchrun, which hears of no notice; end it by SIGTERM" in refused.stderr
    return refused.returncode == 2 and said


def test_two_agents_restart_a_failed_worker_in_a_store_that_no_round_shares(torchrun: Torchrun) -> None:
    """torch's own c10d keeps port and keys over restarts, and its workers meet addresses of the dead. One agent is the
    command `torchrun` itself."""
    options = ("--nnodes=2", "--max-restarts=1", PROGRAMS / "fresh_store.py")
    agents = [torchrun(*options, command=command) for command in (TORCHRUN, COMMAND)]
    first = run(agents)
    assert [worker.rank for worker in first] == [0, 1]
    kill(first[1].pid)
    second = run(agents)
    assert [worker.rank for worker in second] == [0, 1]
    assert {worker.words.partition(" at ")[0] for worker in (*first, *second)} == {"found nothing of others"}
    places = [{worker.words.partition(" at ")[2] for worker in told} for told in (first, second)]
    assert [len(place) for place in places] == [1, 1] and places[0] != places[1]
    assert codes(end(agents)) == [0, 0]


def test_a_job_grows_is_robbed_of_a_node_grows_again_and_ends_well_and_no_drain_is_promised(
    torchrun: Torchrun, shared_store: Address, run_id: str
) -> None:
    """What torch's own c10d cannot do: a newcomer dies there, and nobody is told of a loss."""
    elastic = ("--nnodes=1:2", "--max-restarts=0", STAY)
    first = torchrun(*elastic)
    assert worlds(run([first])) == {(-1, "restart 0 of 1 workers")}
    assert refuses_a_drain(shared_store, run_id)
    agents = [first, torchrun(*elastic)]
    both = run(agents)
    assert worlds(both) == {(-1, "restart 0 of 2 workers")}
    agents[1].signal(signal.SIGKILL)
    assert agents[1].ends().code == -signal.SIGKILL
    os.kill(both[1].pid, signal.SIGKILL)  # torch leaves it as an orphan
    assert worlds(run([first])) == {(-1, "restart 0 of 1 workers")}
    assert why_ended(shared_store, run_id) is Why.LOST
    agents[1] = torchrun(*elastic)
    assert worlds(run(agents)) == {(-1, "restart 0 of 2 workers")}
    agents[1].signal(signal.SIGTERM)
    assert agents[1].ends().code == 1
    assert worlds(run([first])) == {(-1, "restart 0 of 1 workers")}
    assert why_ended(shared_store, run_id) is Why.LEFT
    assert codes(end([first])) == [0]


def test_when_one_agent_has_failed_for_good_the_other_ends_too_and_leaves_no_worker(torchrun: Torchrun) -> None:
    agents = [torchrun("--nnodes=2", STAY) for _ in range(2)]
    told = run(agents)
    kill(told[1].pid)
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [1, 1]
    assert sum("was closed by torch's agent" in one.err for one in ended) == 1
    assert dies(told[0].pid)


@pytest.mark.long
def test_the_agents_meet_in_any_store_of_ours(torchrun: Torchrun, shared_etcd: Cluster | None) -> None:
    skip_without_etcd()
    assert shared_etcd
    agents = [torchrun("--nnodes=2", STAY, endpoint=shared_etcd.endpoints, conf=",store=etcd") for _ in range(2)]
    assert worlds(run(agents)) == {(-1, "restart 0 of 2 workers")}
    assert codes(end(agents)) == [0, 0]
