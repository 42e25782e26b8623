"""What a worker's environment says, for worlds of several nodes; tests/e2e holds the whole of it to a real worker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from elastic.adapters.launch_settings import Kind, LaunchSettings, Program
from elastic.adapters.workers.messages.progress import VARIABLE as PROGRESS
from elastic.adapters.workers.start.attempts import Attempt, again
from elastic.adapters.workers.start.environment import OURS, command, environment, inherited
from elastic.adapters.workers.worker_port import Sink, WorkerSpec
from elastic.core.group import Alone
from elastic.core.group import Settings as Group
from elastic.core.ranks import assign
from elastic.core.rendezvous import Limits, Settings
from elastic.core.world import Endpoint, Generation, Life, Member, Node, Profile, World, WorldId, world_of

ROOT = Path(__file__).parents[4]
FIRST, SECOND = Node("a", 1), Node("b", 1)
WORLD = world_of(
    WorldId(Life("l"), 4),
    (
        Member(FIRST, Profile(Endpoint("host-a", 41_001), 2, "trainer", "host-a")),
        Member(SECOND, Profile(Endpoint("host-b", 41_002), 3, "server", "host-b")),
    ),
    failures=2,
    generation=Generation("job", 3),
)


def found(node: Node, local_rank: int, world: World = WORLD, **settings: Any) -> dict[str, str]:
    role = "trainer" if node == FIRST else "server"
    made = LaunchSettings(
        Program(Kind.SCRIPT, "x"),
        local_world_size=2 if node == FIRST else 3,
        run_id="job7",
        role=role,
        rendezvous=Settings(Limits(1, 2, 5)),
        **settings,
    )
    ranks = assign(world)[node]
    return dict(environment(made, node, world, ranks, ranks.workers[local_rank]))


def test_a_worker_of_the_second_node_knows_its_place_in_the_job_its_node_and_its_role() -> None:
    names = "RANK LOCAL_RANK GROUP_RANK ROLE_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_WORLD_SIZE ROLE_WORLD_SIZE".split()
    there = found(SECOND, 1)
    assert [there[name] for name in names] == ["3", "1", "1", "1", "5", "3", "2", "3"]
    assert (there["ROLE_NAME"], there["ELASTIC_NODE_ID"]) == ("server", "b")


def test_workers_that_restart_alone_meet_in_a_register_of_their_generation() -> None:
    group = Group(alone=Alone(1))
    assert (found(FIRST, 0)["ELASTIC_WORLD"], found(FIRST, 0).get("ELASTIC_GENERATION")) == ("l.1.4", None)
    there = found(FIRST, 0, group=group)
    assert (there["ELASTIC_WORLD"], there["ELASTIC_GENERATION"]) == ("job.3", "3")


def test_workers_that_started_together_know_how_many_they_are_and_one_that_starts_again_is_alone() -> None:
    there = found(SECOND, 1)
    assert there["ELASTIC_PARTY"] == "3 b#1"
    first = Attempt(SECOND, "host-b", 4, assign(WORLD)[SECOND], WorkerSpec(1, ("x",), there), None)
    assert again(first, 1, 0).spec.environment == {**there, "ELASTIC_PARTY": "1 b#1"}
    paged = again(again(evolve(first, spec=evolve(first.spec, environment={PROGRESS: "/r/progress.4.3"})), 1, 0), 2, 0)
    assert paged.spec.environment[PROGRESS] == "/r/progress.4.3.2"  # a name may not grow with the starts
    assert again(evolve(first, error_file=Path("/logs/error.json")), 2, 0).error_file == Path("/logs/error.2.json")


def test_the_reason_of_a_failure_is_looked_for_in_the_file_of_stderr_first() -> None:
    out, errors = Path("/logs/stdout.log"), Path("/logs/stderr.log")
    both = WorkerSpec(1, ("x",), {}, Sink(out), Sink(errors, console=False))
    attempt = Attempt(SECOND, "host-b", 4, assign(WORLD)[SECOND], both, None)
    assert (attempt.log, attempt.own_log) == (errors, errors)
    one = evolve(attempt, spec=evolve(both, stderr=Sink()))
    assert (one.log, one.own_log) == (out, None)


def test_all_workers_of_a_round_meet_at_the_port_of_the_first_node() -> None:
    for node in (FIRST, SECOND):
        assert (found(node, 0)["MASTER_ADDR"], found(node, 0)["MASTER_PORT"]) == ("host-a", "41001")
        assert found(node, 0)["TORCHELASTIC_USE_AGENT_STORE"] == "False"


@pytest.mark.parametrize(
    ("serving", "group", "by"),
    [(FIRST, Group(), "True"), (SECOND, Group(), "False"), (FIRST, Group(alone=Alone(1)), "False")],
)
def test_the_agent_of_the_first_node_serves_the_round_s_store_if_it_serves_the_job_s(
    serving: Node, group: Group, by: str
) -> None:
    """All nodes read it in one profile. Workers that start again alone would meet what their predecessors wrote."""
    profiles = [evolve(each.profile, serves_store=each.node == serving or None) for each in WORLD.members]
    world = evolve(WORLD, profiles=tuple(profiles))
    for node in (FIRST, SECOND):
        assert found(node, 0, world=world, group=group)["TORCHELASTIC_USE_AGENT_STORE"] == by


def test_restarts_and_round_are_the_job_s_the_same_on_every_node() -> None:
    names = ("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "ELASTIC_ROUND", "TORCHELASTIC_RUN_ID")
    assert [found(FIRST, 0)[name] for name in names] == ["2", "5", "4", "job7"]
    assert [found(SECOND, 2)[name] for name in names] == ["2", "5", "4", "job7"]


def test_what_is_inherited_stays_unless_it_is_the_launcher_s_to_say() -> None:
    inherited = {"MINE": "x", "RANK": "77", "MASTER_PORT": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"}
    there = found(FIRST, 1, environment=inherited)
    assert [there[name] for name in inherited] == ["x", "1", "41001", "3"]


@pytest.mark.parametrize(("workers", "inherited", "threads"), [(1, None, None), (2, None, "1"), (2, "4", "4")])
def test_threads_are_one_each_where_several_workers_share_a_host_and_nobody_said_otherwise(
    workers: int, inherited: str | None, threads: str | None
) -> None:
    given = {} if inherited is None else {"OMP_NUM_THREADS": inherited}
    settings = LaunchSettings(Program(Kind.SCRIPT, "x"), local_world_size=workers, environment=given)
    ranks = assign(WORLD)[FIRST]
    assert environment(settings, FIRST, WORLD, ranks, ranks.workers[0]).get("OMP_NUM_THREADS") == threads


KINDS = [
    (Kind.SCRIPT, ("python", "-u", "train3", "--rank=3")),
    (Kind.MODULE, ("python", "-u", "-m", "train3", "--rank=3")),
    (Kind.BINARY, ("train${local_rank}", "--rank=3")),
]


@pytest.mark.parametrize(("kind", "words"), KINDS)
def test_a_command_is_what_torchrun_would_execute(kind: Kind, words: tuple[str, ...]) -> None:
    program = Program(kind, "train${local_rank}", ("--rank=${local_rank}",), "python")
    assert command(program, 3) == words


MACROS = {
    "$local_rank": "3",
    "${local_rank}-${local_rank}": "3-3",
    "$${local_rank}": "${local_rank}",
    "$$": "$",
    "${rank} $RANK": "${rank} $RANK",
    "$": "$",
    "100%": "100%",
    "${": "${",
}


@pytest.mark.parametrize(("argument", "read"), MACROS.items())
def test_of_macros_only_the_local_rank_is_known_and_two_dollars_are_one(argument: str, read: str) -> None:
    assert command(Program(Kind.BINARY, "$local_rank", (argument,)), 3) == ("$local_rank", read)


def test_with_a_virtual_local_rank_each_worker_has_its_own_device_as_its_only_one() -> None:
    inherited = {"CUDA_VISIBLE_DEVICES": "4, GPU-91,MIG-a"}
    for local_rank, device in enumerate(("4", "GPU-91", "MIG-a")):
        there = found(SECOND, local_rank, environment=inherited, virtual_local_rank=True)
        assert (there["LOCAL_RANK"], there["CUDA_VISIBLE_DEVICES"]) == ("0", device)
    there = found(SECOND, 2, virtual_local_rank=True)
    assert (there["LOCAL_RANK"], there["CUDA_VISIBLE_DEVICES"], there["RANK"]) == ("0", "2", "4")


def test_devices_stay_as_they_are_inherited_without_it() -> None:
    assert found(SECOND, 1, environment={"CUDA_VISIBLE_DEVICES": "4,5"})["CUDA_VISIBLE_DEVICES"] == "4,5"
    assert "CUDA_VISIBLE_DEVICES" not in found(SECOND, 1)


KEPT = {
    "ELASTIC_AGENT": "names the outer launchers, whose reapers find the workers of an inner one",
    "ELASTIC_STORE_TOKEN": "a user's secret, which secret_variables.py keeps from workers",
    "ELASTIC_ETCD_PASSWORD": "a user's secret, which secret_variables.py keeps from workers",
    "ELASTIC_STACKS_SIGNAL": "a user's choice",
    "ELASTIC_TRACE": "a user's choice, too, for a job without --trace",
}


def test_every_variable_that_a_launcher_sets_is_kept_from_an_inner_launcher() -> None:
    spelled = {
        name
        for room in ("adapters", "cli", "inprocess", "core")
        for path in sorted((ROOT / room).rglob("*.py"))
        for name in re.findall(r"[\"'](ELASTIC_[A-Z_]+)[\"']", path.read_text())
    }
    assert spelled == OURS | set(KEPT)
    assert inherited(dict.fromkeys(spelled, "outer")) == dict.fromkeys(KEPT, "outer")
