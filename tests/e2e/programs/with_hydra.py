"""A Hydra application, of which each worker runs the whole sweep: told each job, and where Hydra keeps it."""

from __future__ import annotations

import os
from pathlib import Path

import hydra
import stage
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path=None)
def train(config: DictConfig) -> None:
    folder = Path(HydraConfig.get().runtime.output_dir)
    stage.tell(f"lr {config.lr} local {config.local}", f"rank {os.environ['RANK']}", folder.parent.name, folder.name)


train()
