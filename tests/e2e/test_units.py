"""Jobs whose worlds have whole units, or segments, through random losses and returns; ELASTIC_CHAOS_STEPS=200 for long."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from attrs import define, field
from jobs import Job, Jobs, asked, codes, end, kill, lose, run, run_from, worlds
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
    racks: dict[str, str] = field(factory=dict)
    """The rack of each, in a job of segments."""
    agents: dict[str, Launch] = field(factory=dict)
    gone: dict[str, Node] = field(factory=dict)
    """The node that each slot had last, if its agent is gone or was started again."""
    told: list[str] = field(factory=list)

    def starts(self, name: str) -> None:
        labels = [f"--labels=rack={self.racks[name]}"] if self.racks else []
        self.agents[name] = self.job.node(name, *labels, program=self.program)

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
        if state.complete:
            assert all(len(racks) == 1 for racks in racks_of(state, self.unit))
        alike = Counter(self.racks.get(name, "") for name in self.agents).values()
        most = min(sum(count // self.unit * self.unit for count in alike), state.limits.max_nodes)
        return (state.complete and len(state.members) == most) if most else not state.complete


def racks_of(state: RendezvousState, unit: int) -> list[set[str | None]]:
    """Return the racks of each unit of the world, in the order of the ranks."""
    racks = [dict(each.profile.labels).get("rack") for each in state.world.members]
    return [{*racks[at : at + unit]} for at in range(0, len(racks), unit)]


@pytest.fixture
def steps(capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> tuple[int, int]:
    """How many steps, and the seed."""
    steps = int(os.environ.get("ELASTIC_CHAOS_STEPS") or STEPS)
    seed = int(os.environ.get("ELASTIC_CHAOS_SEED") or SEED)
    with capfd.disabled():
        request.config.get_terminal_writer().line(f"ELASTIC_CHAOS_SEED={seed} ELASTIC_CHAOS_STEPS={steps}")
    return steps, seed


@pytest.mark.parametrize(
    ("nodes", "option", "racks", "largest"),
    [
        ("2:8", "--node-unit=2", "", 6),
        pytest.param("2:6", "--segment=rack:2", "1112223", 4, marks=pytest.mark.long),
    ],
    ids=["units", "segments"],
)
def test_every_world_has_whole_units_through_random_losses_and_returns(
    tcpstore_job: Jobs, tmp_path: Path, steps: tuple[int, int], nodes: str, option: str, racks: str, largest: int
) -> None:
    script, sizes = tmp_path / "train.py", tmp_path / "sizes"
    script.write_text(NOTES)
    made = tcpstore_job(nodes, option, "--last-call=1", "--give-up-after=0")
    fleet = Fleet(made, (script, sizes), Random(steps[1]), "abcdefg", 2, dict(zip("abcdefg", racks, strict=False)))
    for name in fleet.names:
        fleet.starts(name)
    try:
        for _ in range(steps[0]):
            fleet.step()
        for name in sorted({*fleet.names} - {*fleet.agents}):
            fleet.starts(name)
        assert len(fleet.settles().members) == largest
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


def test_a_segment_is_filled_by_a_spare_of_its_own_first_and_is_left_out_without_one(
    job: Jobs, launch: Launcher
) -> None:
    """Two racks of three: a, b and c, and d, e and f."""
    made = job("2:4", "--segment=rack:2", "--last-call=1")
    racks = {**dict.fromkeys("abc", "r1"), **dict.fromkeys("def", "r2")}
    agents = {name: made.node(name, f"--labels=rack={racks[name]}") for name in "abde"}
    first = made.reaches(lambda state: state.complete and len(state.members) == 4).round
    assert worlds(run_from(first, agents.values())) == {(first, "restart 0 of 4 workers")}
    agents |= {name: made.node(name, f"--labels=rack={racks[name]}") for name in "cf"}
    made.reaches(lambda state: state.census[Status.WAITING] == 2)
    lose(agents.pop("b"))
    told = run([agents[name] for name in "acde"])
    assert worlds(told) == {(first + 1, "restart 0 of 4 workers")}
    assert all(len(each) == 1 for each in racks_of(made.reaches(lambda state: state.complete), 2))
    agents["f"].says("spare, 4 of 4 seats are taken")
    lose(agents.pop("c"))
    assert worlds(run([agents[name] for name in "de"])) == {(first + 2, "restart 0 of 2 workers")}
    agents["a"].says("spare, waits for 1 more node of rack r1 to make a segment of 2")
    assert "2 nodes running · spare: " in (status := asked(made, launch=launch).stdout)
    assert "a (rack r1 lacks 1 node)" in status and "f (rack r2 lacks 1 node)" in status
    agents["b"] = made.node("b", "--labels=rack=r1")
    assert worlds(run([agents[name] for name in "abde"])) == {(first + 3, "restart 0 of 4 workers")}
    assert codes(end([*agents.values()])) == [0] * 5


def test_ranks_of_a_segment_are_neighbours_under_a_policy_and_a_worker_restarts_alone(tcpstore_job: Jobs) -> None:
    """By their zones alone a and b would be neighbours."""
    labels = {"a": "rack=r1,zone=z1", "b": "rack=r2,zone=z1", "d": "rack=r1,zone=z2", "e": "rack=r2,zone=z2"}
    options = ("--segment=rack:2", "--rank-policy=group_by(zone)", "--restart-scope=rank", "--max-restarts=1")
    made = tcpstore_job("4:4", *options)
    agents = {name: made.node(name, f"--labels={labels[name]}") for name in labels}
    ranks = {name: run([agent])[0] for name, agent in agents.items()}
    order = sorted(ranks, key=lambda name: ranks[name].rank)
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset("ad"), frozenset("be")}
    kill(ranks["d"].pid)
    (again,) = run([agents["d"]])
    assert (again.round, again.rank) == (0, ranks["d"].rank) and again.pid != ranks["d"].pid
    assert codes(end([*agents.values()])) == [0] * 4


def test_a_node_without_the_label_of_the_segments_says_so_at_once(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2:2", "--segment=rack:2")
    agents = [made.node(name, "--labels=rack=r1") for name in "ab"]
    run(agents)
    stranger = made.node("x")
    stranger.says("this node has no label rack, so the node is a spare; write --labels=rack=VALUE")
    stranger.says("spare, it has no label rack")
    assert codes(end([*agents, stranger])) == [0] * 3


def test_an_agent_with_another_unit_is_refused(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2:4:2")
    agents = [made.node("a")]
    made.reaches(lambda state: len(state.seats) == 1)
    refused = made.node("b", "--nnodes=2:4").ends()
    assert refused.code == 2
    assert "--nnodes=2:4:2 --max-restarts=0" in refused.err and "this agent was given --nnodes=2:4 " in refused.err
    agents[0].signal(signal.SIGTERM)
    agents[0].ends()
