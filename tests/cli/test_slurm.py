"""What the launcher takes from Slurm's environment."""

from __future__ import annotations

from functools import partial

import pytest
from commandlines import settings

from elastic.adapters.store.tcpstore.wire import Address
from elastic.cli.main import run
from elastic.cli.mistakes import Mistake
from elastic.cli.slurm import crowd, endpoint, place, run_id


def test_the_place_of_a_task_is_its_node_then_its_own_number() -> None:
    assert place({"SLURM_NODEID": "3", "SLURM_PROCID": "24"}) == (3, 24)


@pytest.mark.parametrize(
    "environment",
    [{}, {"SLURM_NODEID": "3"}, {"SLURM_PROCID": "3"}, {"SLURM_NODEID": "x", "SLURM_PROCID": "3"},
     {"SLURM_NODEID": "-1", "SLURM_PROCID": "3"}, {"SLURM_NODEID": "1" * 16, "SLURM_PROCID": "²"}],
)  # fmt: skip
def test_whoever_is_no_task_of_slurm_has_no_place(environment: dict[str, str]) -> None:
    assert place(environment) == ()


def test_slurm_orders_the_nodes_unless_the_user_does() -> None:
    with_slurm = partial(settings, {"SLURM_NODEID": "1", "SLURM_PROCID": "1"})
    assert with_slurm("x").place == (1, 1)
    assert with_slurm("--node-rank=0", "x").place == (0,)


JOB = {"SLURM_JOB_ID": "123477", "SLURM_JOB_NODELIST": "gpu[08-11]"}


@pytest.mark.parametrize(
    ("more", "host"),
    [({}, "gpu08"), ({"SLURM_STEP_NODELIST": "gpu[09-10]"}, "gpu09"), ({"SLURM_STEP_NODELIST": "gpu10"}, "gpu08")],
    ids=["job", "step", "a step of one node"],
)
def test_nodes_meet_at_the_first_one_under_the_number_of_the_job(more: dict[str, str], host: str) -> None:
    assert endpoint({**JOB, **more}) == Address(host, 23_477)
    made = settings({**JOB, **more}, "--nnodes=1:4", "x")
    assert (made.store, made.run_id) == (f"{host}:23477", "123477.0")


def test_a_job_that_is_queued_again_has_another_name() -> None:
    assert run_id({**JOB, "SLURM_RESTART_COUNT": "2"}) == "123477.2"


def test_steps_of_one_job_that_run_at_once_do_not_meet() -> None:
    steps = [{**JOB, "SLURM_STEP_NODELIST": "gpu[08-09]", "SLURM_STEP_ID": number} for number in ("0", "1")]
    assert [endpoint(each) for each in steps] == [Address("gpu08", 23_477), Address("gpu08", 23_478)]
    assert [run_id(each) for each in steps] == ["123477.0", "123477.0.1"]
    alone = {**JOB, "SLURM_STEP_NODELIST": "gpu09", "SLURM_STEP_ID": "1"}  # one of several steps, of a node each
    assert (endpoint(alone), run_id(alone)) == (Address("gpu08", 23_477), "123477.0")


def test_what_the_user_says_counts() -> None:
    told = settings({**JOB}, "--nnodes=2", "--rdzv-endpoint=a", "x")
    assert (told.store, told.run_id) == ("a:29400", "none")
    assert settings({**JOB}, "--nnodes=2", "--rdzv-id=mine", "x").run_id == "mine"
    assert settings({**JOB}, "x").store == "in memory"


@pytest.mark.parametrize(
    "environment", [{}, {"SLURM_JOB_ID": "7"}, {"SLURM_JOB_NODELIST": "a"}, {**JOB, "SLURM_JOB_ID": "x"}]
)
def test_outside_of_slurm_nobody_knows_where_nodes_meet(environment: dict[str, str]) -> None:
    assert endpoint(environment) is None
    with pytest.raises(Mistake, match="several nodes must know where they meet"):
        settings({**environment}, "--nnodes=2", "x")


@pytest.mark.parametrize("text", ["gpu[", f"{'x' * 241}"])
def test_a_list_of_nodes_that_cannot_be_read_is_a_mistake(text: str) -> None:
    with pytest.raises(Mistake, match=r"^SLURM_JOB_NODELIST=.*; write --rdzv-endpoint=HOST$"):
        endpoint({**JOB, "SLURM_JOB_NODELIST": text})


def task(local: int, here: str = "8(x2)", node: int = 1, **more: str) -> dict[str, str]:
    """A task of a step of 16, 8 on each of two nodes."""
    return {
        "SLURM_LOCALID": str(local), "SLURM_NODEID": str(node), "SLURM_NTASKS": "16", "SLURM_STEP_TASKS_PER_NODE": here,
        **more,
    }  # fmt: skip


def test_one_of_several_launchers_of_a_node_says_that_each_is_a_node() -> None:
    assert crowd(task(0), 16, 1) == (
        "srun starts 8 launchers on this node, each a node of the job; one launcher starts all workers of a node: "
        "srun --ntasks-per-node=1"
    )
    assert crowd(task(1), 16, 1) == ""


@pytest.mark.parametrize(
    "environment",
    [{}, task(0, "1(x2)"), task(0, "8,1"), task(0, "8", node=3), task(0, "8(x"), task(0, ""), {"SLURM_NTASKS": "8"}],
)
def test_one_launcher_alone_on_its_node_says_nothing_of_others(environment: dict[str, str]) -> None:
    assert crowd(environment, 2, 8) == ""


def test_a_launcher_beside_others_is_refused_if_the_job_cannot_take_them_all() -> None:
    assert crowd(task(0), 2, 1)
    with pytest.raises(Mistake) as refused:
        crowd(task(1), 2, 1)
    assert str(refused.value) == (
        "srun starts 8 launchers on this node and 16 in all, each a node of the job, which takes 2 at most (--nnodes); "
        "write srun --ntasks-per-node=1, or --standalone if each of them is a job"
    )
    with pytest.raises(Mistake, match="srun starts several launchers on this node and 16 in all"):
        crowd(task(1, ""), 2, 1)


def test_launchers_that_together_take_more_gpus_than_the_node_has_are_refused_all_but_the_first() -> None:
    with pytest.raises(Mistake) as refused:
        crowd(task(1, SLURM_GPUS_ON_NODE="8"), 16, 8)
    assert str(refused.value) == crowd(task(0, SLURM_GPUS_ON_NODE="8"), 16, 8)
    assert str(refused.value) == (
        "srun starts 8 launchers on this node with 8 workers each, but it has 8 GPUs (SLURM_GPUS_ON_NODE); write srun "
        "--ntasks-per-node=1"
    )
    assert crowd(task(0, SLURM_GPUS_ON_NODE="8"), 16, 1)  # a GPU for each
    assert crowd(task(0, SLURM_GPUS_ON_NODE="8"), 16, 9)  # not one worker for each GPU in any case
    assert crowd(task(0, SLURM_GPUS_ON_NODE="8", here="1(x2)"), 2, 8) == ""


def test_launchers_that_are_jobs_of_their_own_are_not_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, text in task(1).items():
        monkeypatch.setenv(name, text)
    assert run(["launch", "--standalone", "--no-python", "true"]) == 0
    assert run(["launch", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--no-python", "true"]) == 0
    assert "srun" not in capfd.readouterr().err
    assert run(["launch", "--no-python", "true"]) == 2
    assert "elastic: srun starts 8 launchers on this node and 16 in all" in capfd.readouterr().err
