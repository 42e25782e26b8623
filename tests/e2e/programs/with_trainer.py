"""with_trainer.py FOLDER [fails]: Hugging Face's Trainer, resumed from its last checkpoint. Tells the weights at the end.

With `fails` rank 0 fails in round 0, after step 3, when the test says so.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import stage
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

sys.path.append(str(Path(__file__).parents[3] / "examples" / "integrations"))
from trainer_callback import ElasticCallback  # type: ignore[import-not-found]

FOLDER = sys.argv[1]


class Doubles(Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"given": torch.tensor([float(index)]), "labels": torch.tensor([2.0 * index])}


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1)

    def forward(self, given: Tensor, labels: Tensor) -> dict[str, Tensor]:
        found = self.line(given)
        return {"loss": nn.functional.mse_loss(found, labels), "logits": found}


class Fails(TrainerCallback):  # type: ignore[misc]
    def on_step_end(self, args: object, state: object, control: object, **more: object) -> None:
        if sys.argv[2:] == ["fails"] and stage.round == 0 and state.global_step == 3:  # type: ignore[attr-defined]
            stage.tell("at step 3")
            stage.wait_for_gate(stage.rank)
            raise SystemExit(3)


os.makedirs(FOLDER, exist_ok=True)  # the other rank may look for checkpoints before the first has made it
torch.manual_seed(7)
arguments = TrainingArguments(
    output_dir=FOLDER,
    max_steps=6,
    per_device_train_batch_size=2,
    save_steps=2,
    use_cpu=True,
    report_to="none",
    disable_tqdm=True,
)
trainer = Trainer(model=Line(), args=arguments, train_dataset=Doubles(), callbacks=[ElasticCallback(), Fails()])
trainer.train(resume_from_checkpoint=get_last_checkpoint(FOLDER))
stage.tell("step", trainer.state.global_step, *(f"{float(each.detach()):.6f}" for each in trainer.model.parameters()))
torch.distributed.destroy_process_group()
