"""A job on three etcd members through random faults, one after another and some at once; `make soak` does 1,000 of them."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from random import Random

import pytest
from etcd_members import wait_until
from etcdlab import Lab
from faults import STANDBY, chaos_of
from launches import PROGRAMS, Launcher
from processes import children_of, comes_true, dies, standbys_of

STEPS, SEED = 20, 4
"""What is done where nobody asks for more: the same faults each time, though not at the same moments."""
STANDBYS_STEPS = 10
AFTER_DEATHS_S = 180.0
"""A standby comes in this time, however many have died in a row."""
STAYS = PROGRAMS / "stay.py"


@pytest.fixture
def length(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """Steps and seed. ELASTIC_CHAOS_STEPS=1000 makes the long run, with other faults each time; ELASTIC_CHAOS_SEED
    chooses them."""
    asked = os.environ.get("ELASTIC_CHAOS_STEPS")
    steps = int(asked or request.param)
    seed = int(os.environ.get("ELASTIC_CHAOS_SEED") or (int.from_bytes(os.urandom(4)) if asked else SEED))
    with capfd.disabled():
        request.config.get_terminal_writer().line(f"ELASTIC_CHAOS_SEED={seed} ELASTIC_CHAOS_STEPS={steps}")
    return steps, seed


@pytest.mark.parametrize(
    ("length", "options"),
    [
        pytest.param(STEPS, (), id="workers"),
        pytest.param(STANDBYS_STEPS, (STANDBY,), id="standbys", marks=pytest.mark.long),
    ],
    indirect=["length"],
)
def test_random_faults_lose_nothing(on_etcd: Lab, length: tuple[int, int], options: tuple[str, ...]) -> None:
    """With standbys reapers are killed too, standbys, and workers that were one."""
    steps, seed = length
    on_etcd.options = options
    chaos = chaos_of(on_etcd, Random(seed))
    on_etcd.start()
    try:
        for _ in range(steps):
            chaos.step()
            for agent in on_etcd.agents.values():
                agent.keeps_up()
            killed = {fault.victim for fault in chaos.broken if fault.name == "kill"}
            assert {name for name, agent in on_etcd.agents.items() if agent.has_ended()} == killed & {*on_etcd.agents}
        chaos.mend()
        on_etcd.mend()
        wait_until(on_etcd.has_whole_world, "all nodes in one world", on_etcd.account)
        on_etcd.ends()
        reports = [json.loads(on_etcd.report(name).read_text())["here"] for name in on_etcd.agents]
        assert not options or sum(report["standbys"]["became_workers"] for report in reports) > 0
    except BaseException as error:
        error.add_note("\n".join([f"ELASTIC_CHAOS_SEED={seed} ELASTIC_CHAOS_STEPS={steps}", *chaos.told]))
        raise


@pytest.mark.parametrize("length", [15], indirect=True)
def test_random_kills_of_a_launcher_s_children_cost_no_more_than_restarts_and_leave_nothing(
    launch: Launcher, length: tuple[int, int]
) -> None:
    """Workers, standbys and reapers are killed, at times before the standbys are ready; at the end the agent is."""
    steps, seed = length
    chance = Random(seed)
    running = launch(STANDBY, "--nproc-per-node=2", f"--max-restarts={steps}", STAYS)
    workers, round = running.hears(2), 0
    for _ in range(steps):
        if chance.random() < 0.3:
            pids = [worker.pid for worker in workers]
            assert comes_true(lambda pids=pids: bool(standbys_of(running.pid, *pids)), AFTER_DEATHS_S)  # type: ignore[misc]
        victim = chance.choice(sorted(children_of(running.pid)))
        with suppress(ProcessLookupError):  # what died before it took this child along
            os.kill(victim, signal.SIGKILL)
        assert dies(victim)
        if victim in {worker.pid for worker in workers}:
            workers, round = running.hears(2), round + 1
            assert {worker.round for worker in workers} == {round}
    children = children_of(running.pid)
    running.signal(signal.SIGKILL)
    assert all(dies(child) for child in children)
