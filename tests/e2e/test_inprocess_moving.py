"""Wrapped functions while nodes come and go: the processes of the others live on, and the iteration counts on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from attrs import evolve
from jobs import Job, Jobs, alive, asked, codes, end, kill, lose, only_in
from launches import PROGRAMS, Launch, Launcher, Told
from processes import comes_true, is_alive
from profiles import SOAK

MOVING = (PROGRAMS / "moving.py",)
WEIGHTS = (PROGRAMS / "moving_weights.py",)
soak = pytest.mark.skipif(not SOAK, reason="half a minute: HYPOTHESIS_PROFILE=soak")
SCOPE = ("--restart-scope=rank", "--max-restarts=1", "--nproc-per-node=2", "--last-call=1000")


def hear(*agents: Launch) -> list[Told]:
    """Return what the two workers of each of these agents tell next."""
    return [told for agent in agents for told in agent.hears(2)]


def words(told: list[Told]) -> set[str]:
    return {each.words for each in told}


def pids(told: list[Told]) -> set[int]:
    return {each.pid for each in told}


def come_to(ending: str, agent: Launch, first: list[Told]) -> set[int]:
    """Hear this agent's workers until the last words of each have this ending. Return their process ids. The ranks of a node
    need not leave or come in one moment."""
    last = {each.pid: each.words for each in first}
    while not all(said.endswith(ending) for said in last.values()):
        (told,) = agent.hears(1)
        last[told.pid] = told.words
    return set(last)


@only_in("tcpstore")
def test_the_processes_of_the_others_live_on_when_a_node_is_lost_and_when_it_comes_back(job: Jobs) -> None:
    made = job("1:2", *SCOPE)
    one, two = made.nodes("ab", program=MOVING)
    first = hear(one)
    assert words(first + hear(two)) == {"in 0 of 4"}
    lose(two)
    alone = hear(one)
    assert (words(alone), pids(alone)) == ({"in 1 of 2"}, pids(first))
    back = made.node("b", program=MOVING)
    again = hear(one)
    assert (words(again + hear(back)), pids(again)) == ({"in 2 of 4"}, pids(first))
    assert codes(end([one, back])) == [0, 0]
    assert words(hear(one, back)) == {"returned 2"}
    assert made.report("a")["restarts"] == 0


def test_nobody_waits_for_the_ranks_of_a_node_that_was_lost_before_they_came(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2", *SCOPE)
    one, two = made.node("a", program=MOVING), made.node("b", program=MOVING, environment={"LATE": "1"})
    assert words(hear(two)) == {"late"}
    lose(two)
    assert words(hear(one)) == {"in 0 of 2"}
    one.signal(signal.SIGTERM)
    one.ends()


def test_a_drained_node_leaves_and_the_processes_of_the_others_live_on(tcpstore_job: Jobs, launch: Launcher) -> None:
    made = tcpstore_job("1:2", *SCOPE, "--grace=1")
    one, two = made.nodes("ab", program=MOVING)
    first = hear(one)
    hear(two)
    assert asked(made, "b", "--deadline=4", launch=launch, command="drain").returncode == 0
    assert two.ends().code == 5
    assert come_to("of 2", one, first) == pids(first)
    assert codes(end([one])) == [0]


def test_a_node_that_leaves_by_a_signal_interrupts_the_others_and_their_processes_live_on(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("1:2", *SCOPE, "--grace=1")
    one, two = made.nodes("ab", program=MOVING)
    first = hear(one)
    hear(two)
    two.signal(signal.SIGTERM)
    assert come_to("of 2", one, first) == pids(first)
    two.ends()
    assert codes(end([one])) == [0]
    assert made.report("a")["restarts"] == 0


@pytest.mark.long
def test_a_node_that_was_silent_for_a_ttl_comes_back_and_the_processes_of_the_others_live_on(
    tcpstore_job: Jobs,
) -> None:
    """Its old ranks live until it hears of its loss, and may come back for a moment before."""
    made = tcpstore_job("1:2", *SCOPE)
    one, two = made.nodes("ab", program=MOVING)
    first = hear(one)
    silent = hear(two)
    two.signal(signal.SIGSTOP)
    alone = hear(one)
    assert (words(alone), pids(alone)) == ({"in 1 of 2"}, pids(first))
    two.signal(signal.SIGCONT)
    assert come_to("of 4", one, [evolve(each, words="") for each in first]) == pids(first)
    assert comes_true(lambda: not any(is_alive(each.pid) for each in silent))
    assert codes(end([one, two])) == [0, 0]


def below_the_minimum(made: Job) -> tuple[Launch, list[Told]]:
    """Return the agent that is left of two, where two are asked for, and what its workers told in their world of two."""
    one, two = made.nodes("ab", program=MOVING)
    first = hear(one)
    hear(two)
    lose(two)
    alone = hear(one)
    assert (words(alone), pids(alone)) == ({"in 1 of 2"}, pids(first))
    made.reaches(lambda state: state.round == 1 and not state.complete)
    return one, alone


@pytest.mark.long
def test_below_the_minimum_of_nodes_the_ranks_go_on_and_one_that_fails_starts_again_alone(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2", *SCOPE)
    one, alone = below_the_minimum(made)
    os.kill(alone[1].pid, signal.SIGKILL)
    assert alone[0].pid in come_to("of 2", one, [evolve(alone[0], words=""), evolve(alone[0], pid=0)])
    back = made.node("b", program=MOVING)
    assert words(hear(back)) <= {"in 3 of 4", "in 4 of 4"}
    assert is_alive(alone[0].pid)
    assert codes(end([one, back])) == [0, 0]


def test_a_node_that_is_drained_while_the_agents_meet_leaves_at_once(tcpstore_job: Jobs, launch: Launcher) -> None:
    made = tcpstore_job("2", *SCOPE, "--grace=1")
    one, alone = below_the_minimum(made)
    assert asked(made, "a", "--force", "--deadline=600", launch=launch, command="drain").returncode == 0
    assert one.ends().code == 5
    assert not any(is_alive(each.pid) for each in alone)


@pytest.mark.long
def test_ranks_that_give_up_while_the_agents_meet_have_all_start_anew(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2", *SCOPE)
    one, alone = below_the_minimum(made)
    one.open_gate(1)
    assert comes_true(lambda: not any(is_alive(each.pid) for each in alone))
    back = made.node("b", program=MOVING)
    last = hear(one)
    assert words(last + hear(back)) == {"in 0 of 4"}
    assert codes(end([one, back])) == [0, 0]
    assert made.report("a")["restarts"] == 1


@soak
def test_a_spare_takes_the_place_of_a_lost_node_and_the_processes_of_the_others_live_on(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2", *SCOPE)
    one, two = made.nodes("ab", program=MOVING)
    first = hear(one)
    hear(two)
    spare = made.node("c", program=MOVING)
    made.reaches(lambda state: len(state.seats) == 3)
    lose(two)
    hear(spare)
    assert come_to("of 4", one, [evolve(each, words="") for each in first]) == pids(first)
    assert codes(end([one, spare])) == [0, 0]


@soak
def test_a_rank_that_says_that_all_have_given_up_starts_all_anew(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("2", *SCOPE)
    one, two = made.nodes("ab", program=MOVING)
    first = hear(one)
    hear(two)
    two.open_gate(1)
    told = first[0]
    while told.round == 0:
        (told,) = one.hears(1)
    (other,) = one.hears(1)
    assert words([told, other]) == {"in 0 of 4"}
    assert pids([told, other]).isdisjoint(pids(first))
    assert codes(end([one, two])) == [0, 0]


@soak
def test_the_weights_are_those_of_the_ranks_that_took_part(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("1:2", *SCOPE)
    one, two = made.nodes("ab", program=WEIGHTS)
    first = hear(one)
    assert words(first + hear(two)) == {"in 0 of 4 at 3"}
    lose(two)
    alone = hear(one)
    assert (words(alone), pids(alone)) == ({"in 1 of 2 at 5"}, pids(first))
    back = made.node("b", program=WEIGHTS)
    last = hear(one)
    assert (words(last + hear(back)), pids(last)) == ({"returned -22.0"}, pids(first))
    assert codes(one_and_all.ends() for one_and_all in (one, back)) == [0, 0]


def test_a_script_without_a_wrapper_is_not_touched(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("1:2", *SCOPE)
    one, two = made.nodes("ab")
    first = hear(one)
    hear(two)
    lose(two)
    made.reaches(lambda state: state.round == 1 and state.complete)
    assert alive(first)
    back = made.node("b")
    assert words(hear(back)) == {"restart 0 of 4 workers"}
    made.reaches(lambda state: state.round == 2 and state.complete)
    assert alive(first)
    assert codes(end([one, back])) == [0, 0]
    assert "not stopped here" in one.ends().err


def test_a_worker_that_lived_through_a_change_of_nodes_is_told_of_by_its_round_and_rank_of_now(
    tcpstore_job: Jobs, launch: Launcher
) -> None:
    made = tcpstore_job("1:2", "--restart-scope=rank", "--max-restarts=0", "--last-call=1000")
    one, two = made.nodes("ab")
    one.hears(1)
    (survivor,) = two.hears(1)
    lose(one)
    made.reaches(lambda state: state.round == 1 and state.complete)
    back = made.node("a")
    (newcomer,) = back.hears(1)
    two.says("round 2: 2 nodes (with ")
    assert (survivor.rank, newcomer.rank) == (1, 1)
    shown = asked(made, "--json", "--full=0", launch=launch, command="stacks")
    told = json.loads(shown.stdout)
    assert sorted(rank for each in told["stacks"] for rank in each["ranks"]) == [0, 1]
    kill(survivor.pid)
    assert codes([two.ends(), back.ends()]) == [1, 1]
    report = made.report("b")
    cause = report["failures"][report["cause"]]
    assert (cause["round"], cause["rank"], cause["pid"]) == (2, 0, survivor.pid)
    (ended,) = report["here"]["workers"]
    assert (ended["round"], ended["rank"], ended["pid"]) == (2, 0, survivor.pid)


def hanging(job: Jobs, folder: Path, restarts: int) -> tuple[Job, Launch, Launch]:
    """Return the job of three nodes of which the first was lost, and then the others hang: each of their workers has another
    rank since, and its old one is another worker's."""
    options = (
        "--restart-scope=rank",
        "--nproc-per-node=2",
        "--last-call=1000",
        "--hang-timeout=2",
        "--on-hang=restart",
    )
    made = job("2:3", *options, f"--max-restarts={restarts}")
    one, two, three = made.nodes("abc", program=(PROGRAMS / "moving_hang.py", folder))
    for agent in (one, two, three):
        hear(agent)
    lose(one)
    made.reaches(lambda state: state.round == 1 and state.complete)
    two.open_gate()
    three.open_gate()
    return made, two, three


def test_a_worker_that_hangs_after_a_change_of_nodes_starts_again_and_no_other(
    tcpstore_job: Jobs, tmp_path: Path
) -> None:
    made, two, three = hanging(tcpstore_job, tmp_path, restarts=1)
    (again,) = three.hears(1)
    two.open_gate(1)
    three.open_gate(1)
    assert codes([two.ends(), three.ends()]) == [0, 0]
    (failure,) = made.report("c")["failures"]
    assert (failure["round"], failure["rank"]) == (1, 3) and failure["pid"] != again.pid
    assert failure["message"].startswith("hang: ")


def test_where_nothing_is_wrapped_the_end_of_a_worker_that_hung_ends_the_others_too(
    tcpstore_job: Jobs, tmp_path: Path
) -> None:
    """At once, with no restart left: they would wait for it in vain."""
    made, two, three = hanging(tcpstore_job, tmp_path, restarts=0)
    assert codes([two.ends(), three.ends()]) == [1, 1]
    failures = [each for each in made.report("b")["failures"] if each["message"].startswith("hang: ")]
    assert [each["rank"] for each in failures] == [3]


def test_a_worker_that_lived_through_a_change_of_nodes_is_heard_when_it_is_ready_to_leave(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    made = tcpstore_job("1:2", "--restart-scope=rank", "--last-call=1000")
    drained = (PROGRAMS / "drained.py", tmp_path)
    one, two = made.nodes("ab", program=drained)
    one.hears(1)
    (survivor,) = two.hears(1)
    lose(one)
    made.reaches(lambda state: state.round == 1 and state.complete)
    assert survivor.rank == 1
    assert asked(made, "b", "--force", "--deadline=86400", launch=launch, command="drain").returncode == 0
    assert two.ends().code == 5
    assert [*tmp_path.glob("checkpoint-0-1.json")]


def test_the_first_cause_is_the_failure_after_which_the_budget_of_the_last_world_was_spent(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("1:2", "--restart-scope=rank", "--max-restarts=1", "--last-call=1000")
    one, two = made.nodes("ab")

    def fail() -> int:
        (told,) = one.hears(1)
        kill(told.pid)
        return told.pid

    fail()
    fail()
    made.reaches(lambda state: state.round == 1 and state.complete)
    two.hears(2)
    lose(two)
    made.reaches(lambda state: state.round == 2 and state.complete)
    one.says("round 2: 1 node (without ")
    fail()
    back = made.node("b")
    back.hears(1)
    one.says("round 3: 2 nodes (with ")
    fail()
    last = fail()
    assert codes([one.ends(), back.ends()]) == [1, 1]
    report = made.report("a")
    cause = report["failures"][report["cause"]]
    assert (cause["pid"], cause["round"]) == (last, 3)
    assert [fault["round"] for fault in report["failures"]] == [0, 0, 2, 3, 3]
