"""What people start with torchrun, started with `elastic launch`: nothing in their scripts knows of us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from launches import PROGRAMS, Launcher
from replays import replays

from elastic.core.work import Worked

pytestmark = pytest.mark.long
MISSING = "is not here, so nothing is known of it: write"


def needs(name: str, remedy: str = "make setup") -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(name) is None, reason=f"{name} {MISSING} {remedy}")


IMPORT_S = 180.0
INTEGRATIONS = Path(__file__).parents[2] / "examples" / "integrations"
LARGE = "make frameworks"
"""What installs packages that are too large for each set-up."""


@needs("hydra")
def test_hydra_sweeps_in_each_worker_and_its_own_interpolations_reach_it_unharmed(
    launch: Launcher, tmp_path: Path
) -> None:
    sweep = ("hydra.sweep.dir=" + str(tmp_path) + "/rank_${oc.env:RANK}", "hydra.sweep.subdir=job_${hydra.job.num}")
    script = (PROGRAMS / "with_hydra.py", "--multirun", "+lr=0.1,0.2", "+local=${local_rank}", *sweep)
    launched = launch("--nproc-per-node=2", *script)
    assert sorted(told.words for told in launched.hears(4)) == [
        f"lr {lr} local {rank} rank {rank} rank_{rank} job_{job}"
        for job, lr in enumerate((0.1, 0.2))
        for rank in (0, 1)
    ]
    assert launched.ends().code == 0
    assert {path.name for path in (tmp_path / "rank_1").iterdir()} == {"job_0", "job_1", "multirun.yaml"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "program",
    [
        pytest.param("with_trainer", marks=needs("transformers", LARGE)),
        pytest.param("with_lightning", marks=needs("pytorch_lightning", LARGE)),
    ],
)
def test_a_training_that_fails_and_goes_on_in_standbys_ends_with_the_weights_of_an_undisturbed_one(
    launch: Launcher, tmp_path: Path, program: str
) -> None:
    script, report = PROGRAMS / f"{program}.py", tmp_path / "report.json"
    undisturbed = launch("--nproc-per-node=2", script, tmp_path / "undisturbed")
    weights = {told.words for told in undisturbed.hears(2, IMPORT_S)}
    assert undisturbed.ends().code == 0 and len(weights) == 1
    options = ("--standby", "--nproc-per-node=2", "--max-restarts=1", f"--report={report}")
    disturbed = launch(*options, script, tmp_path / "disturbed", "fails")
    workers = disturbed.hears(2, IMPORT_S)
    assert [told.words for told in workers] == ["at step 3"] * 2
    disturbed.stands_by(2, workers, IMPORT_S)
    disturbed.open_gate(0)
    assert {(told.round, told.words) for told in disturbed.hears(2, IMPORT_S)} == {(1, words) for words in weights}
    assert disturbed.ends().code == 0
    assert json.loads(report.read_text())["here"]["standbys"]["became_workers"] == 4
    works = [work for run in replays(launch.traces) for work in run.trace.steps if isinstance(work, Worked)]
    steps = {
        (each.round, each.before, each.first_step, each.step, each.saved.step if each.saved else None) for each in works
    }
    assert {each for each in steps if each[1]} == {(1, 3, 3, 6, 6)} and (0, None, 1, 3, 2) in steps


FAILS_IN_VALIDATION = f"""
import sys
import pytorch_lightning as lightning, torch
from torch.utils.data import DataLoader, TensorDataset
sys.path.append("{INTEGRATIONS}")
from lightning_callback import ElasticCallback
from elastic.adapters.workers.messages.pages import read_page

class Line(lightning.LightningModule):
    def __init__(self): super().__init__(); self.line = torch.nn.Linear(1, 1)
    def training_step(self, batch, index): return self.line(batch[0]).sum()
    def validation_step(self, batch, index):
        assert read_page(sys.argv[1]).name == "evaluation"
        raise RuntimeError("validation fails")
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.01)

loader = DataLoader(TensorDataset(torch.ones(4, 1)))
silent = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False)
trainer = lightning.Trainer(accelerator="cpu", max_steps=2, callbacks=[ElasticCallback()], **silent)
try: trainer.fit(Line(), loader, loader)
except RuntimeError as error: print(error)
assert not read_page(sys.argv[1]).span
"""


@needs("pytorch_lightning", LARGE)
def test_a_validation_that_fails_ends_the_span_of_the_validation(tmp_path: Path) -> None:
    page = str(tmp_path / "page")
    environment = {**os.environ, "ELASTIC_PROGRESS": page}
    run = [sys.executable, "-c", FAILS_IN_VALIDATION, page]
    assert subprocess.check_output(run, env=environment, text=True, cwd=tmp_path) == "validation fails\n"


def test_a_checkpoint_that_was_being_written_when_a_worker_died_is_not_taken_for_a_whole_one(
    launch: Launcher, tmp_path: Path
) -> None:
    """torch.distributed.checkpoint's asynchronous save, under a restart."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    launched = launch("--nproc-per-node=2", "--max-restarts=1", "--grace=5", PROGRAMS / "saving.py", folder)
    assert [(told.round, told.words) for told in launched.hears(2)] == [(0, "from step 0")] * 2
    again = launched.hears(2)
    assert {told.round for told in again} == {1} and len({told.words for told in again}) == 1
    ends = launched.hears(2)
    assert [told.words for told in ends] == ["to step 4 weights [4.0]", "to step 4 weights [5.0]"]
    assert launched.ends().code == 0
    assert (folder / "4-1" / ".metadata").exists()
