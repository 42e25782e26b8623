"""A node on which workers fail again and again is set aside; the others go on without it, and it comes back."""

from __future__ import annotations

from pathlib import Path

from jobs import Jobs, codes
from launches import Launch

FAILS_ON_B = """import os, stage
stage.tell('begins', os.environ['WORLD_SIZE'])
if os.environ['ELASTIC_NODE_ID'] == 'b' and stage.round < 2:
    stage.wait_for_gate(stage.round)
    raise SystemExit(3)
stage.wait_for_gate(2)
"""


def in_round(agent: Launch, round: int) -> str:
    """Return what the worker of this agent tells in this round; one that is stopped soon may have told nothing before."""
    while (told := agent.hears(1)[0]).round < round:
        pass
    return told.words


def test_a_node_that_always_fails_is_set_aside_and_comes_back_after_its_cool_down(
    tcpstore_job: Jobs, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(FAILS_ON_B)
    made = tcpstore_job("1:2", "--max-restarts=5", "--max-node-failures=1/1", "--last-call=1000")
    agents = made.nodes("ab", program=(script,))
    assert {in_round(agent, 0) for agent in agents} == {"begins 2"}
    agents[1].open_gate(0)
    assert {in_round(agent, 2) for agent in agents} == {"begins 2"}
    for agent in agents:
        agent.open_gate(2)
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [0, 0]
    for out in ended:
        assert "b is set aside after 1 failure, for 00:01, until " in out.err
        assert "b is back after it was set aside" in out.err
    assert "round 1 started" in ended[0].err and "round 1 started" not in ended[1].err
    assert (made.report("a")["restarts"], made.report("a")["set_aside"]) == (1, [])


FAILS_TWICE_ON_B = """import os, stage
stage.tell('begins', os.environ['WORLD_SIZE'])
stage.wait_for_gate(stage.round)
raise SystemExit(3 if os.environ['ELASTIC_NODE_ID'] == 'b' and stage.round < 2 else 0)
"""


def test_a_job_that_needs_the_node_keeps_it(tcpstore_job: Jobs, tmp_path: Path) -> None:
    """Each failure of b is one too many, and without b the others would be below the minimum."""
    script = tmp_path / "train.py"
    script.write_text(FAILS_TWICE_ON_B)
    made = tcpstore_job("2", "--max-restarts=5", "--max-node-failures=1/600")
    agents = made.nodes("ab", program=(script,))
    for round in (0, 1):
        assert {in_round(agent, round) for agent in agents} == {"begins 2"}
        agents[1].open_gate(round)
    assert {in_round(agent, 2) for agent in agents} == {"begins 2"}
    for agent in agents:
        agent.open_gate(2)
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [0, 0]
    assert not any("set aside" in out.err for out in ended)
    assert (made.report("a")["restarts"], made.report("a")["set_aside"]) == (2, [])


def test_a_node_that_fails_too_often_leaves_with_4_and_a_spare_takes_its_place(
    tcpstore_job: Jobs, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(FAILS_TWICE_ON_B)
    made = tcpstore_job("2", "--max-restarts=5", "--leave-after=2/600")
    a, b = made.nodes("ab", program=(script,))
    for round in (0, 1):
        assert {in_round(agent, round) for agent in (a, b)} == {"begins 2"}
        b.open_gate(round)
    left = b.ends()
    assert left.code == 4
    why = "it was the first cause of 2 failures within 600 s"
    assert any(f"this node stays out of job {made.run_id}: {why}" in line for line in left.lines)
    c = made.node("c", program=(script,))
    assert {in_round(agent, 2) for agent in (a, c)} == {"begins 2"}
    for agent in (a, c):
        agent.open_gate(2)
    assert codes([a.ends(), c.ends()]) == [0, 0]
    assert [(each["node"].partition("#")[0], each["reason"]) for each in made.report("a")["unfit"]] == [("b", why)]
    assert made.report("a")["restarts"] == 2
