"""Jobs whose worlds have whole units, through random losses and returns of nodes; ELASTIC_CHAOS_STEPS=200 for a long run."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from random import Random

import pytest
from attrs import define, field
from jobs import Job, Jobs, asked, codes, end, lose, run, worlds
from launches import Launch, Launcher

from elastic.core.rendezvous import RendezvousState, Status
from elastic.core.world import Node

STEPS, SEED = 20, 4
AT_ONCE_MAX = 3
"""This many nodes at most come and go at once."""

NOTES = """import os, sys
with open(sys.argv[1], "a") as file:
    file.write(f"{os.environ['ELASTIC_ROUND']} {os.environ['WORLD_SIZE']}\\n")
import stage
stage.wait_for_gate()
"""


@define
class Fleet:
    """Agents that come and go at random. `told` says what was done."""

    job: Job
    program: tuple[Path, ...]
    chance: Random
    names: str
    unit: int
    agents: dict[str, Launch] = field(factory=dict)
    gone: dict[str, Node] = field(factory=dict)
    """The node that each slot had last, if its agent is gone or was started again."""
    told: list[str] = field(factory=list)

    def starts(self, name: str) -> None:
        self.agents[name] = self.job.node(name, program=self.program)

    def step(self) -> None:
        """Some nodes come, are lost, or leave; each at most once."""
        state = self.settles()
        for name in self.chance.sample(self.names, self.chance.randint(1, AT_ONCE_MAX)):
            if name not in self.agents:
                self.told.append(f"start {name}")
                self.starts(name)
            elif len(self.agents) > 1:
                self.gone[name] = next(node for node in state.seats if node.slot == name)
                self._goes(name)

    def _goes(self, name: str) -> None:
        agent = self.agents.pop(name)
        if self.chance.random() < 0.7:
            self.told.append(f"lose {name}")
            lose(agent)
        else:
            self.told.append(f"stop {name}")
            agent.signal(signal.SIGTERM)
            assert agent.ends().code == 128 + signal.SIGTERM

    def settles(self) -> RendezvousState:
        """Wait until the nodes that live, and no other, have seats, and as many as possible a place in one world."""
        for agent in self.agents.values():
            agent.keeps_up()
        return self.job.reaches(self._is_settled)

    def _is_settled(self, state: RendezvousState) -> bool:
        here = {node.slot for node in state.present}
        if here != {*self.agents} or any(node in state.seats for node in self.gone.values()):
            return False
        most = min(len(self.agents) // self.unit * self.unit, state.limits.max_nodes)
        return (state.complete and len(state.members) == most) if most else not state.complete


@pytest.fixture
def steps(capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> tuple[int, int]:
    """How many steps, and the seed."""
    steps = int(os.environ.get("ELASTIC_CHAOS_STEPS") or STEPS)
    seed = int(os.environ.get("ELASTIC_CHAOS_SEED") or SEED)
    with capfd.disabled():
        request.config.get_terminal_writer().line(f"ELASTIC_CHAOS_SEED={seed} ELASTIC_CHAOS_STEPS={steps}")
    return steps, seed


def test_every_world_has_whole_units_through_random_losses_and_returns(
    tcpstore_job: Jobs, tmp_path: Path, steps: tuple[int, int]
) -> None:
    script, sizes = tmp_path / "train.py", tmp_path / "sizes"
    script.write_text(NOTES)
    made = tcpstore_job("2:8", "--node-unit=2", "--last-call=1", "--give-up-after=0")
    fleet = Fleet(made, (script, sizes), Random(steps[1]), "abcdefg", 2)
    for name in fleet.names:
        fleet.starts(name)
    try:
        for _ in range(steps[0]):
            fleet.step()
        for name in sorted({*fleet.names} - {*fleet.agents}):
            fleet.starts(name)
        assert len(fleet.settles().members) == 6
        assert codes(end([*fleet.agents.values()])) == [0] * 7
    except BaseException as error:
        error.add_note("\n".join(fleet.told))
        raise
    told = [(int(round), int(size)) for round, size in map(str.split, sizes.read_text().splitlines())]
    assert len({round for round, _ in told}) > steps[0] // 2
    assert {size for _, size in told} <= {2, 4, 6} and len({(round, size) for round, size in told}) == len(dict(told))


def test_a_node_over_the_last_unit_says_so_until_one_more_comes(tcpstore_job: Jobs, launch: Launcher) -> None:
    made = tcpstore_job("2:4:2", "--last-call=1")
    agents = made.nodes("abc")
    made.reaches(lambda state: state.complete and state.census[Status.WAITING] == 1)
    assert worlds(run(agents[:2])) == {(0, "restart 0 of 2 workers")}
    agents[2].says("spare, waits for 1 more node to make a unit of 2")
    assert "2 nodes running · spare: c (a unit of 2 lacks 1 node)" in asked(made, launch=launch).stdout
    agents.append(made.node("d"))
    assert worlds(run(agents)) == {(1, "restart 0 of 4 workers")}
    lose(agents[1])
    assert worlds(run([agents[0], agents[2]])) == {(2, "restart 0 of 2 workers")}
    assert codes(end([agents[0], *agents[2:]])) == [0, 0, 0]


def test_an_agent_with_another_unit_is_refused(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2:4:2")
    agents = [made.node("a")]
    made.reaches(lambda state: len(state.seats) == 1)
    refused = made.node("b", "--nnodes=2:4").ends()
    assert refused.code == 2
    assert "--nnodes=2:4:2 --max-restarts=0" in refused.err and "this agent was given --nnodes=2:4 " in refused.err
    agents[0].signal(signal.SIGTERM)
    agents[0].ends()
