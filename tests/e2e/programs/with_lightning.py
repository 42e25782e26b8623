"""with_lightning.py FOLDER [fails]: Lightning's Trainer, resumed from its last checkpoint. Tells the weights at the end.

With `fails` rank 0 fails in round 0, after step 3, when the test says so.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytorch_lightning as lightning
import stage
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.append(str(Path(__file__).parents[3] / "examples" / "integrations"))
from lightning_callback import ElasticCallback  # type: ignore[import-not-found]

FOLDER = Path(sys.argv[1])
GIVEN = torch.arange(8.0).reshape(8, 1)


class Line(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        given, wanted = batch
        return nn.functional.mse_loss(self.line(given), wanted)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Fails(lightning.Callback):  # type: ignore[misc]
    def on_train_batch_end(self, trainer: lightning.Trainer, *others: object) -> None:
        if sys.argv[2:] == ["fails"] and stage.round == 0 and trainer.global_step == 3:
            stage.tell("at step 3")
            stage.wait_for_gate(stage.rank)
            raise SystemExit(3)


torch.manual_seed(7)
checkpoints = ModelCheckpoint(dirpath=FOLDER, filename="{step}", every_n_train_steps=2, save_top_k=-1)
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=int(os.environ["LOCAL_WORLD_SIZE"]),
    strategy="ddp",
    max_steps=6,
    callbacks=[checkpoints, ElasticCallback(), Fails()],
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
line = Line()
saved = FOLDER / "step=2.ckpt"
loader = DataLoader(TensorDataset(GIVEN, 2 * GIVEN), batch_size=2)
trainer.fit(line, loader, ckpt_path=str(saved) if saved.exists() else None)
stage.tell("step", trainer.global_step, *(f"{float(each.detach()):.6f}" for each in line.parameters()))
torch.distributed.destroy_process_group()
