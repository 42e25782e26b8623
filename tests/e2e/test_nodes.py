"""Several nodes that fail, come, go and finish in order: one world, one count, one verdict on all of them."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from jobs import CONF, STAY, Jobs, alive, codes, end, kill, lose, only_in, run, slots, worlds
from launches import PROGRAMS, Launcher
from ports import reserved
from processes import comes_true, dies

from elastic.core.rendezvous import Status

RANKS = PROGRAMS / "ranks.py"


ATTRS = """
import traceback
with open({asked!r}, "a") as file:
    traceback.print_stack(file=file)
raise ImportError
"""


@only_in("tcpstore")
def test_no_agent_loads_attrs_for_a_start_or_a_restart(job: Jobs, tmp_path: Path) -> None:
    """The import would take a tenth of either."""
    asked = tmp_path / "asked"
    for name in ("attr", "attrs"):
        (tmp_path / f"{name}.py").write_text(ATTRS.format(asked=str(asked)))
    both = job("2", "--max-restarts=1")
    path = f"{tmp_path}:{both.launch.environment['PYTHONPATH']}"
    agents = [both.node(name, environment={"PYTHONPATH": path}) for name in "ab"]
    kill(run(agents, each=1)[0].pid)
    run(agents, each=1)
    assert codes(end(agents)) == [0, 0]
    assert not asked.exists(), asked.read_text()


def test_a_worker_that_fails_restarts_all_nodes_with_one_count_and_one_charge(job: Jobs) -> None:
    both = job("2", "--max-restarts=1", "--nproc-per-node=2")
    agents = both.nodes("ab")
    first = run(agents, each=2)
    assert [worker.rank for worker in first] == [0, 1, 2, 3]
    assert worlds(first) == {(0, "restart 0 of 4 workers")}
    kill(first[3].pid)
    second = run(agents, each=2)
    assert worlds(second) == {(1, "restart 1 of 4 workers")}
    assert not any(alive([worker]) for worker in first)
    ended = end(agents)
    assert codes(ended) == [0, 0]
    assert [one.lines[-1].startswith("all 4 workers succeeded · 1 restart, ") for one in ended] == [True, True]
    for name in "ab":  # what it says in all is what its trace tells: see `misreported`
        goodput = both.report(name)["here"]["goodput"]
        assert {("starting", "failure"), ("running", "none")} < {(e["bucket"], e["cause"]) for e in goodput["shares"]}
        assert goodput["micros"] == sum(each["micros"] for each in goodput["shares"])


@only_in("tcpstore")
def test_two_nodes_that_fail_at_once_cost_one_restart(job: Jobs) -> None:
    both = job("2", "--max-restarts=1")
    agents = both.nodes("ab")
    kill(*(worker.pid for worker in run(agents)))
    assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
    assert codes(end(agents)) == [0, 0]
    assert [both.report(name)["restarts"] for name in "ab"] == [1, 1]


@only_in("etcd")
def test_a_rank_policy_gives_the_nodes_of_a_rack_neighbouring_ranks_and_a_loss_keeps_their_order(job: Jobs) -> None:
    made = job("3:4", "--last-call=1000", "--rank-policy=group_by(rack)")
    agents = {}
    for name, rack in zip("abcd", ("r2", "r1", "r2", "r1"), strict=True):
        agents[name] = made.node(name, f"--labels=rack={rack}")
        made.reaches(lambda state, name=name: name in slots(state))  # type: ignore[misc]
    assert [agents[name].hears(1)[0].rank for name in "acbd"] == [0, 1, 2, 3]
    lose(agents["a"])
    assert [agents[name].hears(1)[0].rank for name in "cbd"] == [0, 1, 2]
    assert codes(end([agents[name] for name in "cbd"])) == [0, 0, 0]


@only_in("etcd")
def test_ranks_are_prefix_sums_over_nodes_of_different_sizes_and_roles(job: Jobs) -> None:
    """The first node that arrives has the first ranks; what is counted within a role skips the others."""
    three = job("3")
    agents = []
    for name, size, role in (("a", 1, "reader"), ("b", 2, "trainer"), ("c", 3, "reader")):
        agents.append(three.node(name, f"--nproc-per-node={size}", f"--role={role}", program=[RANKS]))
        three.reaches(lambda state, name=name: name in slots(state))  # type: ignore[misc]
    told = [worker for agent, size in zip(agents, (1, 2, 3), strict=True) for worker in agent.hears(size)]
    assert [(worker.rank, worker.words) for worker in told] == [
        (0, "a 0/3 local 0/1 of 6 reader 0/4"),
        (1, "b 1/3 local 0/2 of 6 trainer 0/2"),
        (2, "b 1/3 local 1/2 of 6 trainer 1/2"),
        (3, "c 2/3 local 0/3 of 6 reader 1/4"),
        (4, "c 2/3 local 1/3 of 6 reader 2/4"),
        (5, "c 2/3 local 2/3 of 6 reader 3/4"),
    ]
    assert codes(agent.ends() for agent in agents) == [0, 0, 0]


@only_in("tcpstore")
def test_all_workers_of_a_world_are_given_one_meeting_place_and_another_in_each_round(job: Jobs) -> None:
    both = job("2", "--max-restarts=1")
    agents = both.nodes("ab", program=[PROGRAMS / "meeting_place.py"])
    first = run(agents)
    kill(first[1].pid)
    second = run(agents)
    places = {worker.words for worker in first}, {worker.words for worker in second}
    assert [len(place) for place in places] == [1, 1]
    assert places[0] != places[1]
    assert codes(end(agents)) == [0, 0]


@only_in("tcpstore")
def test_a_node_with_another_program_is_refused_with_both_names_and_the_job_goes_on(job: Jobs) -> None:
    pair = job("1:2")
    first = pair.node("a")
    run([first])
    other = pair.node("b", program=[PROGRAMS / "meeting_place.py"]).ends()
    assert other.code == 3
    assert "a#" in other.lines[-1] and "this node was given meeting_place.py" in other.lines[-1]
    assert other.lines[-1].endswith("choose another one, or allow it with --rdzv-conf=same_program=false")
    assert codes(end([first])) == [0]


@only_in("etcd")
def test_a_second_job_with_the_id_of_one_that_has_succeeded_runs_nothing_and_ends_with_3(job: Jobs) -> None:
    first = job("1")
    assert codes(end([first.node("a")])) == [0]
    second = first.node("b").ends()
    assert second.code == 3
    assert second.lines[-1].startswith("nothing ran here: the job had succeeded before this node came; store ")
    assert second.lines[-1].endswith(f" remembers job {first.run_id}, a new job has another --rdzv-id")


@pytest.mark.parametrize("nnodes", ["1", "1:2"])
def test_a_second_job_on_an_endpoint_is_refused_where_it_would_be_a_spare_of_the_first(
    launch: Launcher, nnodes: str
) -> None:
    """Of a sweep of eight jobs that were given no id, seven had run nothing, and ended with 0."""
    with reserved() as port:
        meet = (f"--nnodes={nnodes}", f"--rdzv-endpoint=localhost:{port}", f"--rdzv-conf={CONF}last_call_timeout=0.1")
    first = [launch(*meet, STAY, "--lr=1")]
    first[0].hears(1)
    if nnodes != "1":
        first.append(launch(*meet, STAY, "--lr=1"))
        run(first)
    second = launch(*meet, STAY, "--lr=2").ends()
    assert second.code == 3 and not second.out
    how = "in a job of one node" if nnodes == "1" else "with other arguments, and its job is complete"
    assert f"runs stay.py {how}; give each job an --rdzv-id of its own" in second.lines[-1]
    assert codes(end(first)) == [0] * len(first)


def test_nodes_with_other_arguments_form_a_job_with_a_warning_and_a_spare_with_an_id_stays(launch: Launcher) -> None:
    """Arguments differ by node in real jobs: `--node_rank`, or paths."""
    with reserved() as port:
        meet = (
            "--nnodes=2",
            f"--rdzv-endpoint=localhost:{port}",
            "--rdzv-id=sweep",
            f"--rdzv-conf={CONF}last_call_timeout=0.1",
        )
    agents = [launch(*meet, f"--node-id={which}", STAY, f"--part={which}") for which in "ab"]
    agents[0].says("stay.py does not have the same arguments on all nodes: ")
    spare = launch(*meet, "--node-id=c", STAY, "--part=c")
    spare.says("spare")
    assert codes(end([*agents, spare])) == [0, 0, 0]


@only_in("tcpstore")
def test_nodes_with_different_programs_run_together_where_the_job_allows_it(job: Jobs) -> None:
    both = job("2", conf=f"{CONF}same_program=false,")
    agents = [both.node("a"), both.node("b", program=[PROGRAMS / "meeting_place.py"])]
    assert sorted(worker.rank for worker in run(agents)) == [0, 1]
    assert codes(end(agents)) == [0, 0]


@only_in("etcd")
def test_a_program_of_one_name_that_differs_between_nodes_is_warned_of_with_the_nodes(
    job: Jobs, tmp_path: Path
) -> None:
    changed = tmp_path / "ranks.py"
    changed.write_text(RANKS.read_text() + "\n# changed\n")
    both = job("2")
    agents = [both.node("a", program=[RANKS]), both.node("b", program=[changed])]
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [0, 0]
    for one in ended:
        (warning,) = [line for line in one.lines if "is not the same file" in line]
        assert warning.endswith(("ranks.py is not the same file on all nodes: a | b", "on all nodes: b | a"))


@only_in("tcpstore")
def test_sixteen_nodes_start_restart_and_succeed_together(job: Jobs) -> None:
    names = "abcdefghijklmnop"
    sixteen = job("16", "--max-restarts=1")
    agents = [sixteen.node(name) for name in names]
    first = run(agents)
    assert [worker.rank for worker in first] == list(range(16))
    kill(first[7].pid)
    second = run(agents)
    assert [worker.rank for worker in second] == list(range(16))
    assert worlds(second) == {(1, "restart 1 of 16 workers")}
    assert codes(end(agents)) == [0] * 16
    assert {sixteen.report(name)["restarts"] for name in names} == {1}


@only_in("tcpstore")
def test_a_node_that_comes_late_is_waited_for(job: Jobs) -> None:
    both = job("2")
    early = both.node("a")
    both.reaches(lambda state: slots(state) == ["a"])
    assert not early.says_within("round 0: 2 nodes", 0.5)
    agents = [early, both.node("b")]
    assert worlds(run(agents)) == {(0, "restart 0 of 2 workers")}
    assert codes(end(agents)) == [0, 0]


def test_a_node_that_comes_after_the_last_call_is_taken_up_and_costs_no_restart(job: Jobs) -> None:
    elastic = job("1:2", "--last-call=0")
    early = elastic.node("a")
    first = run([early])
    assert worlds(first) == {(0, "restart 0 of 1 workers")}
    agents = [early, elastic.node("b")]
    assert worlds(run(agents)) == {(1, "restart 0 of 2 workers")}
    assert not alive(first)
    assert codes(end(agents)) == [0, 0]
    assert [elastic.report(name)["restarts"] for name in "ab"] == [0, 0]


@only_in("etcd")
def test_with_its_maximum_of_nodes_a_job_waits_for_no_last_call(job: Jobs) -> None:
    elastic = job("1:2", "--last-call=1000")
    agents = elastic.nodes("ab")
    assert worlds(run(agents)) == {(0, "restart 0 of 2 workers")}
    assert codes(end(agents)) == [0, 0]


def test_a_node_that_is_told_to_stop_leaves_the_others_to_go_on_and_nothing_is_charged(job: Jobs) -> None:
    elastic = job("2:3", "--last-call=1000")
    agents = elastic.nodes("abc")
    run(agents)
    agents[1].signal(signal.SIGTERM)
    stay = [agents[0], agents[2]]
    assert worlds(run(stay)) == {(1, "restart 0 of 2 workers")}
    assert agents[1].ends().code == 143
    assert codes(end(stay)) == [0, 0]
    assert [elastic.report(name)["restarts"] for name in "ac"] == [0, 0]


@only_in("tcpstore")
def test_a_job_grows_shrinks_and_grows_again_at_no_charge(job: Jobs) -> None:
    elastic = job("1:3", "--last-call=0")
    first = elastic.node("a")
    run([first])
    agents = [first, elastic.node("b")]
    assert worlds(run(agents)) == {(1, "restart 0 of 2 workers")}
    agents.append(elastic.node("c"))
    assert worlds(run(agents)) == {(2, "restart 0 of 3 workers")}
    agents[0].signal(signal.SIGTERM)
    assert agents[0].ends().code == 143
    assert worlds(run(agents[1:])) == {(3, "restart 0 of 2 workers")}
    agents.append(elastic.node("d"))
    told = run(agents[1:])
    assert worlds(told) == {(4, "restart 0 of 3 workers")}
    assert codes(end(agents[1:])) == [0, 0, 0]


@only_in("tcpstore")
def test_newcomers_one_by_one_interrupt_a_job_once_and_then_all_together(job: Jobs, tmp_path: Path) -> None:
    """Four seconds apart, where a newcomer waits for three: that is the pace of the nodes, no wait for what they do. Their
    agents have started before, and their checks hold them back: no start counts to the twelve seconds of the round."""
    elastic = job("1:4", "--last-call=0", conf=CONF.replace("upscale_after=0.2", "upscale_after=3"))
    agents = [elastic.node("a")]
    run(agents)
    newcomers = []
    for name in "cd":
        check = f"sh -c 'touch {tmp_path}/{name}-waits; until test -e {tmp_path}/{name}-joins; do sleep 0.1; done'"
        newcomers.append(elastic.node(name, f"--node-check={check}", "--node-check-timeout=1e6"))
        assert comes_true((tmp_path / f"{name}-waits").exists)
    agents.append(elastic.node("b"))
    elastic.reaches(lambda state: state.complete and "b" in slots(state) and state.round == 1)
    (tmp_path / "c-joins").touch()
    elastic.reaches(lambda state: "c" in slots(state))
    time.sleep(4)
    (tmp_path / "d-joins").touch()
    assert worlds(run(newcomers)) == {(2, "restart 0 of 4 workers")}
    assert codes(end([*agents, *newcomers])) == [0, 0, 0, 0]


@only_in("tcpstore")
def test_a_node_that_waits_for_others_and_is_told_to_stop_leaves_alone(job: Jobs) -> None:
    both = job("2")
    pending = both.node("a")
    both.reaches(lambda state: slots(state) == ["a"])
    pending.signal(signal.SIGTERM)
    assert pending.ends().code == 143
    both.reaches(lambda state: not state.seats and not state.closed)
    agents = both.nodes("bc")
    assert worlds(run(agents)) == {(0, "restart 0 of 2 workers")}
    assert codes(end(agents)) == [0, 0]


@only_in("tcpstore")
def test_a_spare_ends_with_the_job_that_did_not_need_it(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    run(agents)
    spare = both.node("c")
    both.reaches(lambda state: "c" in slots(state))
    assert codes(end(agents)) == [0, 0]
    ended = spare.ends()
    assert ended.code == 0
    assert "Traceback" not in ended.err


@only_in("tcpstore")
def test_a_node_that_comes_when_its_job_of_several_nodes_has_succeeded_ends_with_3(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    run(agents)
    assert codes(end(agents)) == [0, 0]
    ended = both.node("c").ends()
    assert ended.code == 3
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("job", "limits", "stands", "given"),
    [
        ("tcpstore", ("--nnodes=3",), "--nnodes=2:2 --max-restarts=1", "--nnodes=3:3 --max-restarts=1"),
        ("etcd", ("--max-restarts=2",), "--nnodes=2:2 --max-restarts=1", "--nnodes=2:2 --max-restarts=2"),
        ("tcpstore", ("--restart-scope=rank",), "--restart-scope=group --rdzv", "--restart-scope=rank --rdzv"),
        ("etcd", ("--rdzv-conf=keep_alive_interval=9",), "keep_alive_interval=0.5,keep", "keep_alive_interval=9,keep"),
    ],
    ids=["nnodes", "max-restarts", "scope", "spans"],
    indirect=["job"],
)
def test_a_node_that_was_told_other_limits_is_refused_with_both_values(
    job: Jobs, limits: tuple[str], stands: str, given: str
) -> None:
    both = job("2", "--max-restarts=1")
    first = both.node("a")
    both.reaches(lambda state: slots(state) == ["a"])
    other = both.node("b", *limits).ends()
    assert other.code == 2
    assert stands in other.err and given in other.err
    agents = [first, both.node("c")]
    assert worlds(run(agents)) == {(0, "restart 0 of 2 workers")}
    assert codes(end(agents)) == [0, 0]


def test_a_later_start_of_a_node_takes_over_from_one_that_still_runs(job: Jobs) -> None:
    both = job("2")
    old, other = both.nodes("ab")
    first = run([old, other])
    new = both.node("a")
    ended = old.ends()
    assert ended.code == 3
    assert "a later start of a has taken its seat" in ended.err
    told = run([new, other])
    assert worlds(told) == {(1, "restart 0 of 2 workers")}
    assert not alive(first[:1])
    assert codes(end([new, other])) == [0, 0]
    assert both.report("b")["restarts"] == 0


@only_in("tcpstore")
def test_a_failure_for_good_ends_all_nodes_at_once_with_the_same_first_cause(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    told = run(agents)
    kill(told[1].pid)
    ended = [agent.ends() for agent in agents]
    reports = [both.report(name) for name in "ab"]
    assert codes(ended) == [1, 1]
    assert reports[0]["failures"] == reports[1]["failures"]
    assert [(fault["rank"], fault["exit_code"]) for fault in reports[0]["failures"]] == [(1, -signal.SIGKILL)]
    assert reports[0]["ending"] == reports[1]["ending"]
    causes = [[line for line in one.lines if line.startswith("  first cause ")] for one in ended]
    assert causes[0] == causes[1] and len(causes[0]) == 1


@only_in("tcpstore")
def test_of_two_nodes_that_fail_at_once_the_cause_is_the_one_whose_write_ended_the_round(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    kill(*(worker.pid for worker in run(agents)))
    ended = {name: agent.ends() for name, agent in zip("ab", agents, strict=True)}
    assert codes(ended.values()) == [1, 1]
    mine, other = both.report("a"), both.report("b")
    assert mine["ending"] == other["ending"]
    for fault in mine["failures"]:  # each on the terminal of its own node
        assert f" rank {fault['rank']} (local 0, pid {fault['pid']}) failed: " in ended[fault["name"]].err
    causes = [report["failures"][report["cause"]] for report in (mine, other)]
    assert causes[0] == causes[1]
    assert causes[0]["node"] == mine["ending"]["by"]


@only_in("tcpstore")
def test_a_node_that_is_done_hears_at_once_that_another_failed_for_good(job: Jobs) -> None:
    """torchrun's waits 300 s at its exit barrier."""
    both = job("2")
    agents = both.nodes("ab")
    told = run(agents)
    agents[0].open_gate()
    both.reaches(lambda state: Status.DONE in [seat.status for seat in state.seats.values()])
    kill(told[1].pid)
    assert codes(agent.ends() for agent in agents) == [1, 1]
    assert both.report("a")["failures"] == both.report("b")["failures"]
    assert [fault["rank"] for fault in both.report("a")["failures"]] == [1]


@only_in("tcpstore")
def test_a_node_whose_exit_barrier_times_out_ends_with_its_workers_success_and_the_others_go_on(job: Jobs) -> None:
    both = job("2", "--exit-barrier-timeout=1")
    agents = both.nodes("ab")
    run(agents)
    agents[0].open_gate()
    first = agents[0].ends()
    assert first.code == 0
    assert (
        "this node's 1 worker succeeded; after 1 s (--exit-barrier-timeout or TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT) it waits "
        "no longer for b"
    ) in first.lines[-1]
    agents[1].open_gate()
    assert agents[1].ends().code == 0


def test_a_node_whose_exit_barrier_times_out_serves_the_store_until_the_others_are_gone(tcpstore_job: Jobs) -> None:
    two = tcpstore_job("2", "--exit-barrier-timeout=0.2", own_store=True)
    a, b = agents = two.nodes("ab")
    run(agents)
    a.open_gate()
    a.says("it waits no longer for b")
    a.says("this node has left · its agent serves the store for 1 node, until they are gone")
    assert [agent.code for agent in end([b])] == [0], b.account()
    assert a.ends().code == 0


@only_in("tcpstore")
def test_a_node_that_is_done_works_again_when_another_fails_and_may_restart(job: Jobs) -> None:
    both = job("2", "--max-restarts=1")
    agents = both.nodes("ab")
    told = run(agents)
    agents[0].open_gate()
    assert dies(told[0].pid)
    both.reaches(lambda state: Status.DONE in [seat.status for seat in state.seats.values()])
    kill(told[1].pid)
    assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
    assert codes(end(agents)) == [0, 0]


@only_in("etcd")
def test_all_nodes_make_the_same_report(job: Jobs) -> None:
    """Apart from `here`, which says who made it, and when."""
    both = job("2", "--max-restarts=1", "--nproc-per-node=2")
    agents = both.nodes("ab")
    for rank in (0, 3):
        kill(run(agents, each=2)[rank].pid)
    ended = [agent.ends() for agent in agents]
    first, second = ({**both.report(name), "here": None} for name in "ab")
    assert codes(ended) == [1, 1]
    assert first == second
    assert [(fault["round"], fault["rank"]) for fault in first["failures"]] == [(0, 0), (1, 3)]
    rows = [[line for line in one.lines if line.startswith(("FAILED", "  first", "  before"))] for one in ended]
    assert rows[0] == rows[1] and len(rows[0]) == 3


@only_in("tcpstore")
def test_a_program_that_one_node_lacks_fails_the_job_on_all_and_names_the_node(job: Jobs) -> None:
    both = job("2", "--max-restarts=3")
    first = both.node("a")
    both.reaches(lambda state: slots(state) == ["a"])
    agents = [first, both.node("b", program=["nowhere/stay.py"])]
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [1, 1]
    assert ["nowhere/stay.py: no such file in " in one.err for one in ended] == [True, True]
    assert both.report("a")["failures"] == both.report("b")["failures"]
    assert both.report("a")["failures"][0]["node"].startswith("b#")
    assert both.report("a")["restarts"] == 0
