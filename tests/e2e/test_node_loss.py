"""Nodes that are lost without a word, replaced, paused, or live by another clock: no restart is spent on any of it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from jobs import Job, Jobs, alive, codes, end, in_each, kill, lose, only_in, run, slots, worlds
from launches import PROGRAMS, TESTS, Launch
from processes import children_of, dies, is_alive

from elastic.core.rendezvous import RendezvousState, Status

BEHIND = {"PYTHONPATH": f"{TESTS}/e2e/shifted:{TESTS}", "ELASTIC_TEST_SHIFT_S": "-60"}
"""On a host whose clock is a minute behind."""


@only_in("tcpstore")
def test_the_workers_of_a_lost_node_die_with_its_agent(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab", "--nproc-per-node=2")
    told = run(agents, each=2)
    lose(agents[1])
    assert all(dies(worker.pid) for worker in told[2:])
    assert alive(told[:1])


def test_an_elastic_job_goes_on_without_a_lost_node_and_nothing_is_charged(job: Jobs) -> None:
    elastic = job("2:3", "--last-call=1000")
    agents = elastic.nodes("abc")
    run(agents)
    lose(agents[1])
    stay = [agents[0], agents[2]]
    assert worlds(run(stay)) == {(1, "restart 0 of 2 workers")}
    assert codes(end(stay)) == [0, 0]
    assert_nothing_charged(elastic, "ac")


@only_in("tcpstore")
def test_a_node_that_is_killed_as_one_again_and_again_is_named(job: Jobs) -> None:
    """As the kernel kills a pod that is out of memory: agent, reaper and workers at once, so nobody is left to report it."""
    both = job("2")
    agents = both.nodes("ab")
    for losses in (1, 2, 3):
        run(agents)
        kill_as_one(agents[1])
        both.reaches(lambda state, round=losses: waits_in_round(state, round, "a"))  # type: ignore[misc]
        agents = [agents[0], both.node("b")]
    agents[0].says("b was lost 3 times soon after a start: perhaps its agent is killed")
    run(agents)
    assert codes(end(agents)) == [0, 0]


@only_in("tcpstore")
def test_a_job_that_goes_in_circles_ends_with_6_and_every_report_says_why(job: Jobs) -> None:
    """Its node is killed as one soon after each start, and started again at once: the fourth loss in a row ends the job."""
    both = job("2", "--give-up-after=4")
    agents = both.nodes("ab")
    for _ in range(4):
        run(agents)
        kill_as_one(agents[1])
        agents = [agents[0], both.node("b")]
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [6, 6]
    for name, one in zip("ab", ended, strict=True):
        report = both.report(name)
        assert (report["ending"]["state"], report["ending"]["why"]) == ("failed", "no progress")
        rounds = [(each["round"], each["why"], each["lost"]) for each in report["fruitless"]]
        assert rounds == [(number, "lost", ["b"]) for number in range(4)]
        assert "b was lost 4 times soon after a start: perhaps its agent is killed" in one.err


STEPS = """import elastic, stage, sys
elastic.progress(step=stage.round * int(sys.argv[1]) + 1)
stage.tell('begins')
stage.wait_for_gate()
"""


@only_in("tcpstore")
@pytest.mark.parametrize(("rises_by", "losses"), [(10, 5), (0, 3)])
def test_a_job_whose_steps_rise_never_gives_up_and_one_that_redoes_them_does(
    rises_by: int, losses: int, job: Jobs, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(STEPS)
    both = job("2", "--give-up-after=2")
    agents = both.nodes("ab", program=(script, str(rises_by)))
    for loss in range(losses):
        run(agents)
        if rises_by or not loss:
            both.reaches(lambda state, round=loss: state.round == round and state.progressed)  # type: ignore[misc]
        kill_as_one(agents[1])
        agents = [agents[0], both.node("b", program=(script, str(rises_by)))]
    if not rises_by:
        assert codes(agent.ends() for agent in agents) == [6, 6]
        assert [each["round"] for each in both.report("a")["fruitless"]] == [1, 2]
        return
    run(agents)
    assert codes(end(agents)) == [0, 0]


@only_in("tcpstore")
def test_a_node_that_is_lost_again_and_again_leaves_with_4_and_the_next_one_may_come(job: Jobs) -> None:
    both = job("2", "--leave-after=3/36000")
    agents = both.nodes("ab")
    for _ in range(3):
        run(agents)
        kill_as_one(agents[1])
        agents = [agents[0], both.node("b")]
    left = agents[1].ends()
    why = "it was lost and started again 3 times within 36000 s"
    assert left.code == 4 and any(f"this node stays out of job {both.run_id}: {why}" in line for line in left.lines)
    agents = [agents[0], both.node("b")]
    run(agents)
    assert codes(end(agents)) == [0, 0]
    assert [(each["node"].partition("#")[0], each["reason"]) for each in both.report("a")["unfit"]] == [("b", why)]


def kill_as_one(agent: Launch) -> None:
    """Kill all that it has started before anybody can act upon another's death."""
    tree = [agent.pid]
    for pid in tree:
        tree += children_of(pid)
    for signum in (signal.SIGSTOP, signal.SIGKILL):
        for pid in tree:
            os.kill(pid, signum)


@only_in("tcpstore")
def test_the_loss_of_the_node_that_watches_the_others_is_seen_too(job: Jobs) -> None:
    elastic = job("1:3", "--last-call=1000")
    agents = elastic.nodes("abc")
    run(agents)
    lose(agents[0])
    assert worlds(run(agents[1:])) == {(1, "restart 0 of 2 workers")}
    assert codes(end(agents[1:])) == [0, 0]
    assert_nothing_charged(elastic, "bc")


@only_in("tcpstore")
def test_a_job_of_fixed_size_waits_for_a_replacement_and_nothing_is_charged(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    first = run(agents)
    lose(agents[1])
    both.reaches(lambda state: waits_in_round(state, 1, "a"))
    assert not is_alive(first[0].pid)
    again = [agents[0], both.node("c")]
    told = run(again)
    assert worlds(told) == {(1, "restart 0 of 2 workers")}
    assert codes(end(again)) == [0, 0]
    assert_nothing_charged(both, "ac")


def test_a_replacement_may_come_back_under_the_name_of_the_lost_node_before_the_loss_is_noticed(job: Jobs) -> None:
    both = job("2", conf="keep_alive_interval=20,")
    agents = both.nodes("ab")
    run(agents)
    lose(agents[1])
    again = [agents[0], both.node("b")]
    assert worlds(run(again)) == {(1, "restart 0 of 2 workers")}
    assert codes(end(again)) == [0, 0]
    assert_nothing_charged(both, "ab")


@pytest.mark.parametrize(("job", "nnodes"), in_each("2", "1:2"), indirect=["job"])
def test_workers_that_a_loss_makes_fail_are_not_charged(job: Jobs, nnodes: str) -> None:
    """The failure is charged until the loss is seen, and then refunded: no restart is allowed here."""
    both = job(nnodes, "--last-call=1000")
    agents = both.nodes("ab")
    told = run(agents)
    agents[1].signal(signal.SIGKILL)
    kill(told[0].pid)  # before the loss is seen, which would end this worker as well
    lose(agents[1])
    both.reaches(lambda state: state.round == 1 and [node.slot for node in state.participants] == ["a"])
    again = [agents[0], both.node("c")] if nnodes == "2" else agents[:1]
    assert worlds(run(again)) == {(1, f"restart 0 of {len(again)} workers")}
    assert codes(end(again)) == [0] * len(again)
    assert both.report("a")["restarts"] == 0


@only_in("tcpstore")
def test_a_spare_takes_the_place_of_a_lost_node_at_once(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    run(agents)
    agents.append(both.node("c"))
    both.reaches(lambda state: slots(state) == ["a", "b", "c"])
    lose(agents[0])
    told = run(agents[1:])
    assert worlds(told) == {(1, "restart 0 of 2 workers")}
    assert codes(end(agents[1:])) == [0, 0]
    assert_nothing_charged(both, "bc")


@only_in("tcpstore")
def test_a_node_lost_after_it_was_done_does_not_undo_what_it_did(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    told = run(agents)
    agents[1].open_gate()
    both.reaches(lambda state: is_done(state, "b"))
    lose(agents[1])
    both.reaches(lambda state: Status.GONE in [seat.status for seat in state.seats.values()])
    assert is_alive(told[0].pid)
    (ended,) = end(agents[:1])
    assert ended.code == 0
    assert both.report("a")["restarts"] == 0


def test_a_node_that_is_paused_for_less_than_the_ttl_is_missed_by_nobody(job: Jobs) -> None:
    both = job("2", conf="keep_alive_interval=1,keep_alive_max_attempt=15,")  # lost after 15 s
    agents = both.nodes("ab")
    told = run(agents)
    agents[1].signal(signal.SIGSTOP)
    time.sleep(5.0)  # for several heartbeats, with time for a machine that stands still as long again
    agents[1].signal(signal.SIGCONT)
    assert alive(told)
    assert codes(end(agents)) == [0, 0]
    assert both.reaches(lambda state: state.closed is not None).round == 0


@pytest.mark.parametrize(("job", "which"), in_each(0, 1), indirect=["job"])
def test_a_node_that_wakes_up_evicted_stops_its_workers_and_comes_back_as_a_newcomer(job: Jobs, which: int) -> None:
    elastic = job("1:2", "--last-call=1000")
    agents = elastic.nodes("ab")
    first = run(agents)
    agents[which].signal(signal.SIGSTOP)
    assert worlds(run([agents[1 - which]])) == {(1, "restart 0 of 1 workers")}
    assert is_alive(first[which].pid)
    agents[which].signal(signal.SIGCONT)
    second = run(agents)
    assert worlds(second) == {(2, "restart 0 of 2 workers")}
    assert not is_alive(first[which].pid)
    ended = end(agents)
    assert codes(ended) == [0, 0]
    dead = re.compile(r"this agent stood still for \d+ s and was taken for dead")
    assert [len(dead.findall(each.err)) for each in ended] == [int(place == which) for place in (0, 1)]
    assert_nothing_charged(elastic, "ab")


@pytest.mark.long
def test_a_node_that_is_paused_for_20_s_at_the_real_spans_is_lost_once_and_comes_back(job: Jobs) -> None:
    elastic = job("1:2", "--last-call=1000", conf="")
    agents = elastic.nodes("ab")
    first = run(agents)
    agents[1].signal(signal.SIGSTOP)
    paused_at = time.monotonic()
    assert worlds(run(agents[:1])) == {(1, "restart 0 of 1 workers")}
    time.sleep(max(paused_at + 20.0 - time.monotonic(), 0.0))
    agents[1].signal(signal.SIGCONT)
    assert worlds(run(agents)) == {(2, "restart 0 of 2 workers")}
    assert not is_alive(first[1].pid)
    ended = end(agents)
    assert codes(ended) == [0, 0]
    assert re.search(r"this agent stood still for \d\d s and was taken for dead", ended[1].err)
    assert_nothing_charged(elastic, "ab")


@pytest.mark.parametrize("shift_s", [-20, 20])
@only_in("tcpstore")
def test_a_host_whose_wall_clock_is_wrong_is_a_node_like_any_other(job: Jobs, shift_s: int) -> None:
    both = job("2", "--max-restarts=1")
    first = both.node("a")
    both.reaches(lambda state: slots(state) == ["a"])
    hook = {"PYTHONPATH": f"{TESTS}/e2e/shifted:{TESTS}", "ELASTIC_TEST_SHIFT_S": str(shift_s)}
    agents = [first, both.node("b", environment=hook)]
    told = run(agents)
    state = both.reaches(lambda state: state.complete)
    true, shifted = (node.incarnation / 1000 for node in state.seats)
    assert abs(shifted - true - shift_s) < abs(shift_s) / 2
    kill(told[0].pid)
    assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
    assert codes(end(agents)) == [0, 0]
    assert both.reaches(lambda state: state.closed is not None).round == 1


@pytest.mark.parametrize(("job", "dead"), in_each("ab", "a"), indirect=["job"])
def test_a_node_follows_its_own_dead_start_that_was_later_by_a_clock_that_is_behind_now(job: Jobs, dead: str) -> None:
    """It ended with code 3: a later start had taken its seat. That start had died."""
    both = job("2", "--max-restarts=0")
    agents = dict(zip("ab", both.nodes("ab"), strict=True))
    run(agents.values())
    before = {node.slot: node for node in both.reaches(lambda state: state.complete).seats}
    for name in dead:
        lose(agents[name])
    again = {name: both.node(name, environment=BEHIND) for name in dead}
    run((agents | again).values())
    after = both.reaches(lambda state: state.complete and state.round > 0)
    ended = end([*(agents | again).values()])
    assert codes(ended) == [0, 0]
    assert {node.slot for node in after.participants} == {"a", "b"}
    if len(dead) > 1:  # a seat that others have emptied meanwhile is free
        assert any(node.incarnation > before[node.slot].incarnation for node in after.participants)
        assert any("this host's clock is behind, or was; the node takes that seat" in each.err for each in ended)


@only_in("tcpstore")
def test_a_node_whose_workers_are_forked_follows_its_own_dead_start(job: Jobs) -> None:
    """The refused agent closed what forks the workers, and its successor failed the job."""
    alone = job("1:2")
    endpoint, conf = (option.partition("=")[2] for option in alone.endpoint_options())
    meets = {"rdzv_endpoint": endpoint, "rdzv_conf": dict(each.split("=") for each in conf.split(","))}
    settings = json.dumps({**meets, "rdzv_id": alone.run_id, "node_id": "a", "nnodes": "1:2", "start_method": "fork"})
    call = (sys.executable, PROGRAMS / "launches_function.py", settings, "fails_once", "end")
    first = alone.launch.command(*call)
    run([first])
    lose(first)
    again = alone.launch.command(*call, environment=BEHIND)
    run([again])
    again.open_gate()
    ended = again.ends()
    assert ended.code == 0
    assert "this host's clock is behind, or was; the node takes that seat" in ended.err


def waits_in_round(state: RendezvousState, round: int, *names: str) -> bool:
    """The round is open, and these nodes are there."""
    here = [node.slot for node in state.participants]
    return (state.round, state.complete, here) == (round, False, list(names))


def is_done(state: RendezvousState, name: str) -> bool:
    return any(node.slot == name and seat.status is Status.DONE for node, seat in state.seats.items())


def assert_nothing_charged(job: Job, names: str) -> None:
    reports = [job.report(name) for name in names]
    assert [(report["restarts"], report["failures"]) for report in reports] == [(0, [])] * len(names)
