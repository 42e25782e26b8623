"""The manifests of examples/kubernetes are what Kubernetes' API takes, and their commands do what their comments say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jobs import codes, run
from launches import ELASTIC, PROGRAMS, Launch, Launcher, launcher

from elastic.cli.exit_codes import EXITS, Answer

FOLDER = Path(__file__).parents[2] / "examples/kubernetes"
MANIFESTS = {
    f"{file.name} {each['kind']}": each
    for file in (FOLDER / name for name in ("job.yaml", "jobset.yaml", "store.yaml"))
    for each in yaml.safe_load_all(file.read_text())
}
JOB, JOB_SET = MANIFESTS["job.yaml Job"], MANIFESTS["jobset.yaml JobSet"]
VERSION = "1.33"
"""The oldest whose Jobs have all fields that are used here."""
NODES = 4
UID = "7d0f6c1e-5a52-4b1c-9d4c-0f1c9ad0a6a1"


def jobs() -> Mapping[str, Any]:
    """The Jobs: that of its own, and those which a JobSet would make."""
    parts = {each["name"]: each["template"]["spec"] for each in JOB_SET["spec"]["replicatedJobs"]}
    return {"job": JOB["spec"], **parts}


def made(spec: Any) -> Any:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}


def container(spec: Any) -> Any:
    (only,) = spec["template"]["spec"]["containers"]
    return only


@pytest.mark.parametrize("name", [name for name, each in MANIFESTS.items() if each is not JOB_SET])
def test_the_schema_of_the_api_takes_each_manifest(name: str) -> None:
    kubernetes_validate.validate(MANIFESTS[name], VERSION, strict=True)


@pytest.mark.parametrize("name", jobs())
def test_the_schema_of_the_api_takes_each_job_and_no_job_with_a_slip(name: str) -> None:
    kubernetes_validate.validate(made(jobs()[name]), VERSION, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(made({**jobs()[name], "completion": 1}), VERSION, strict=True)


def test_both_jobs_run_the_same_node_but_for_the_place_of_the_store() -> None:
    job, part = (dict(spec) for spec in (JOB["spec"], jobs()["nodes"]))
    job.pop("successPolicy")
    assert yaml.safe_dump(job).replace("elastic-store:", "train-store-0-0.train:") == yaml.safe_dump(part)


@pytest.mark.parametrize("name", ["job", "nodes"])
def test_a_job_ends_at_the_codes_after_which_no_start_helps(name: str) -> None:
    rules = [rule for rule in jobs()[name]["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    done = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules}
    assert done == {
        "FailJob": [int(code) for code, (_, answer) in EXITS.items() if answer is Answer.END],
        "Ignore": [5],
    }


def test_a_pod_has_longer_to_end_than_its_node_to_leave() -> None:
    spec = JOB["spec"]["template"]["spec"]
    (deadline,) = (word for word in container(JOB["spec"])["command"] if word.startswith("--drain-deadline="))
    assert spec["terminationGracePeriodSeconds"] > int(deadline.partition("=")[2])


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as start:
        yield start


def here(command: Sequence[str], places: Mapping[str, str | Path]) -> list[str]:
    """The command, with what only a cluster has replaced by what is here."""
    text = "\0".join(command)
    for there, ours in places.items():
        assert there in text, there
        text = text.replace(there, str(ours))
    return text.split("\0")


def test_a_pod_shows_the_job_and_one_that_must_go_is_drained_by_its_hook_while_the_others_go_on(
    launch: Launcher, tmp_path: Path
) -> None:
    (store,) = MANIFESTS["store.yaml Deployment"]["spec"]["template"]["spec"]["containers"]
    store_word, *serve = here(store["command"], {"$(POD_IP):29400": "localhost:0"})
    assert store_word == "elastic"
    served = launch.command(ELASTIC, *serve).prints("nodes meet there with --rdzv-endpoint=")
    (endpoint,) = re.findall(r"--rdzv-endpoint=(\S+)\n", served)
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 4)
    token.chmod(0o400)
    nodes = [node(launch, endpoint, token, tmp_path, index) for index in range(NODES)]
    assert len(run(nodes)) == NODES
    (line,) = (line for line in (FOLDER / "README.md").read_text().splitlines() if "elastic status" in line)
    in_pod, _, shell = line.strip().partition(" -- sh -c ")
    (words,) = shlex.split(shell)
    elastic, *ask = shlex.split(words)
    places = {"elastic-store": endpoint, "/run/secrets/elastic/token": token, "$JOB_UID": UID}
    shown = launch.command(ELASTIC, *here(ask, places)).ends()
    assert elastic == "elastic"
    assert (in_pod, json.loads(shown.out)["state"]) == (f"kubectl exec job/{JOB['metadata']['name']}", "running")
    lost, *others = reversed(nodes)
    sh, *hook = here(
        container(JOB["spec"])["lifecycle"]["preStop"]["exec"]["command"],
        {"/run/drain": tmp_path / f"{NODES - 1}", "kill -0 1": f"kill -0 {lost.pid}"},
    )
    assert sh == "sh"
    launch.command("sh", *hook)
    assert lost.ends().code == 5
    assert {told.words for told in run(others)} == {f"restart 0 of {NODES - 1} workers"}
    for each in others:
        each.open_gate()
    assert codes(each.ends() for each in others) == [0] * (NODES - 1)
    assert again(launch, endpoint, token, tmp_path, 0) == 0, "a pod that is replaced when the job has succeeded"


def again(launch: Launcher, endpoint: str, token: Path, folder: Path, index: int) -> int:
    (folder / f"{index}").rmdir()
    return node(launch, endpoint, token, folder, index).ends().code


def node(launch: Launcher, endpoint: str, token: Path, folder: Path, index: int) -> Launch:
    (folder / f"{index}").mkdir()
    command = here(
        container(JOB["spec"])["command"],
        {
            "--nproc-per-node=gpu": "--nproc-per-node=1",
            "elastic-store:29400": endpoint,
            "/run/secrets/elastic/token": token,
            "$(JOB_COMPLETION_INDEX)": f"{index}",
            "$(JOB_UID)": UID,
            "/run/drain": folder / f"{index}",
            "/app/train.py": f"{PROGRAMS / 'drained.py'}\0{folder}",
        },
    )
    return launch(*command[2:])
