"""The examples of examples/integrations and the runtime for Kubeflow Trainer: read by the programs they are for, and run.

What TorchX and Kubeflow's API make of them is asked of TorchX and of the models of that API, which `make integration-tools`
installs into a .venv of their own; SkyPilot is much larger, and `make integrations` brings it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from jobs import codes, end, lose, run, worlds
from launches import PROGRAMS, TIMEOUT_S, Launcher, launcher
from ports import reserved

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/integrations"
TRAINER = ROOT / "examples/kubernetes/trainer.yaml"
BIN = Path(sys.executable).parent
TOOLS, SKY = (ROOT / f".venvs/{name}/bin" for name in ("integrations", "sky"))
needs_tools = pytest.mark.skipif(not (TOOLS / "torchx").exists(), reason="no TorchX: write make integration-tools")
needs_sky = pytest.mark.skipif(not (SKY / "sky").exists(), reason="no SkyPilot: write make integrations")
CHECKED = """
import json, sys
from kubeflow_trainer_api import models
for document in json.load(sys.stdin):
    model = getattr(models, "TrainerV1alpha1" + document["kind"])
    if model.from_dict(document).to_dict() != document:
        sys.exit("a field that the API has not")
"""


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as start:
        yield start


@pytest.mark.long
@pytest.mark.parametrize(("package", "script"), [("lightning_fabric", "fabric"), ("accelerate", "accelerate")])
def test_a_framework_trains_in_workers_of_the_launcher_and_a_smaller_world_goes_on_from_its_checkpoint(
    launch: Launcher, tmp_path: Path, package: str, script: str
) -> None:
    if not find_spec(package):
        pytest.skip(f"no {package} here: write make setup")
    program = (FOLDER / f"{script}_training.py", tmp_path)
    # One worker is a new process. The other one imported the framework before it had a rank.
    first = launch("--nproc-per-node=2", "--standby=1", "--tee=1", *program, "3").ends()
    assert first.code == 0, first.err
    # 4 rows for each of 2 ranks, 3 times. Their data differ, and their weights are equal: those of both gradients.
    begun = re.findall(r"\[default(.)\]:rank \1 of 2 begins after step 0 with weight (.+)\n", first.out)
    ended = re.findall(r"\[default(.)\]:rank \1 of 2 has done 3 steps, now on 24 rows, with weight (.+)\n", first.out)
    (saved,) = {weight for _, weight in ended}
    assert sorted(rank for rank, _ in begun) == sorted(rank for rank, _ in ended) == ["0", "1"]
    assert saved not in dict(begun).values()
    again = launch("--nproc-per-node=1", *program).ends()
    assert again.code == 0 and f"rank 0 of 1 begins after step 3 with weight {saved}\n" in again.out, again.err
    assert "rank 0 of 1 has done 6 steps, now on 12 rows, with weight " in again.out


@needs_tools
def test_torchx_runs_its_component_on_two_nodes_and_hands_the_arguments_on(launch: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "told.py"
    script.write_text(
        "import os, sys\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], sys.argv[1:], flush=True)\n"
    )
    with reserved() as port:
        component = f"{FOLDER / 'torchx_component.py'}:elastic_launch"
        options = ("--j=2x2", f"--port={port}", f"--script={script}", "--", "--epochs=3", "two words")
        command = (TOOLS / "torchx", "run", "--scheduler=local_cwd", "--wait", "--log", component, *options)
        ended = launch.command(*command, environment={"PATH": f"{BIN}:{os.environ['PATH']}"}).ends()
    assert ended.code == 0, ended.err
    said = ended.out + ended.err
    assert [f"rank {rank} of 4 ['--epochs=3', 'two words']" in said for rank in range(4)] == [True] * 4, said


COMPONENT = """
import json, sys
from torchx.specs import macros
from torchx_component import elastic_launch
(role,) = elastic_launch("--epochs=3", script="train.py", j=sys.argv[1]).roles
print(json.dumps(macros.Values("", "app", "0", "MAIN_NODE").apply(role).args))
"""


@needs_tools
@pytest.mark.parametrize("told", [{}, {"MAIN_NODE": ""}, {"MAIN_NODE": "localhost"}, {"MAIN_NODE": "gpu-01"}])
def test_replica_0_of_torchx_meets_the_others_at_an_address_that_they_can_reach(
    tmp_path: Path, told: Mapping[str, str]
) -> None:
    command: list[str | Path] = [TOOLS / "python", "-c", COMPONENT, "2x4"]
    made = subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True, timeout=TIMEOUT_S).stdout
    program = tmp_path / "elastic"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **told}
    given = subprocess.run(["bash", *json.loads(made)], check=True, capture_output=True, text=True, env=environment)
    own = subprocess.run(["hostname", "-I"], check=True, capture_output=True, text=True).stdout.split()
    address = next((each for each in own if "." in each), "localhost")
    host, options = "gpu-01" if told.get("MAIN_NODE") == "gpu-01" else address, given.stdout.splitlines()
    place = [f"--rdzv-endpoint={host}:29400", "--rdzv-id=app", "--node-id=0"]
    assert options[:4] == ["launch", *place] and options[-2:] == ["train.py", "--epochs=3"]


@needs_tools
def test_kubeflows_models_take_the_runtime_and_its_job_and_none_with_a_slip() -> None:
    documents = list(yaml.safe_load_all(TRAINER.read_text()))
    slip = json.loads(json.dumps(documents).replace("backoffLimit", "backofLimit"))
    assert [checked(each).returncode for each in (documents, slip)] == [0, 1]


def checked(documents: object) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [TOOLS / "python", "-c", CHECKED]
    return subprocess.run(
        command, input=json.dumps(documents), check=False, capture_output=True, text=True, timeout=TIMEOUT_S
    )


def test_pods_of_kubeflow_trainer_meet_by_its_variables_and_a_pod_that_was_killed_is_replaced(launch: Launcher) -> None:
    runtime, job = yaml.safe_load_all(TRAINER.read_text())
    (part,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (node,) = part["template"]["spec"]["template"]["spec"]["containers"]
    assert (node["name"], job["spec"]["runtimeRef"]["name"]) == ("node", runtime["metadata"]["name"])
    elastic, word, *options = node["command"]
    assert (elastic, word) == ("elastic", "launch")
    with reserved() as port:
        place = {
            "PET_NNODES": "2",
            "PET_NPROC_PER_NODE": "1",
            "PET_MASTER_ADDR": "localhost",
            "PET_MASTER_PORT": f"{port}",
        }

        def pod(index: int) -> Mapping[str, str]:
            return {**place, "PET_NODE_RANK": f"{index}"}

        nodes = [launch(*options, PROGRAMS / "stay.py", environment=pod(index)) for index in (0, 1)]
        assert worlds(run(nodes)) == {(0, "restart 0 of 2 workers")}
        lose(nodes[1])
        nodes[1] = launch(*options, PROGRAMS / "stay.py", environment=pod(1))
        assert worlds(run(nodes)) == {(1, "restart 0 of 2 workers")}
        assert codes(end(nodes)) == [0, 0]


def test_the_script_for_skypilot_starts_one_job_on_the_nodes_that_it_names(launch: Launcher, tmp_path: Path) -> None:
    task = yaml.safe_load((FOLDER / "skypilot.yaml").read_text())
    with reserved() as port:
        text = task["run"].replace(":29400", f":{port}").replace("train.py", shlex.quote(str(PROGRAMS / "stay.py")))
        text = text.replace("--log-dir=logs", f"--log-dir={shlex.quote(str(tmp_path / 'logs'))}")
        sets = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "SKYPILOT_NUM_NODES": f"{task['num_nodes']}",
            "SKYPILOT_NUM_GPUS_PER_NODE": "2",
            "SKYPILOT_NODE_IPS": "127.0.0.1\n127.0.0.1",
            "SKYPILOT_TASK_ID": "sky-2026-11-30-06-21-18-563597_train_1",
        }
        nodes = [
            launch.command("bash", "-c", text, environment={**sets, "SKYPILOT_NODE_RANK": f"{rank}"})
            for rank in range(task["num_nodes"])
        ]
        assert worlds(run(nodes, 2)) == {(0, "restart 0 of 4 workers")}
        assert codes(end(nodes)) == [0, 0]


@needs_sky
def test_skypilot_reads_its_task() -> None:
    command: list[str | Path] = [
        SKY / "python",
        "-c",
        "import sys, sky; print(sky.Task.from_yaml(sys.argv[1]).num_nodes)",
        FOLDER / "skypilot.yaml",
    ]
    read = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (read.returncode, read.stdout) == (0, "2\n"), read.stderr
