"""The same training, restarted inside its processes: `train.py`, wrapped.

Imports, data and processes survive a fault: every rank enters one function again. The function begins as a restarted script
does, with the checkpoint. It writes a checkpoint in an atomic section, so that no restart tears it. A loss that is not a
number is a fault like others, so the weights that gave it are thrown away.

    elastic launch --standalone --nproc-per-node=2 --restart-scope=rank --max-restarts=3 resilient.py --checkpoint-dir DIR

`--fault EPOCH:RANK:KIND` makes something go wrong, once: error, hang, nan or kill. A rank that is killed is started again by
the launcher; the others wait for it (`min_world_size`), so the weights at the end are those of a run without faults.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import train  # type: ignore[import-not-found]
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import elastic
from elastic.inprocess import CallWrapper, Wrapper

SOFT = timedelta(seconds=4)  # an epoch takes a tenth of that
WORLD_SIZE = int(os.environ["WORLD_SIZE"])


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train on the digits, and go on inside the process when a rank fails.")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint-dir", type=Path, required=True, help="resume from here, and write here")
    parser.add_argument("--save-final", type=Path, metavar="PATH", help="write the final weights to this file")
    parser.add_argument("--fault", action="append", default=[], metavar="EPOCH:RANK:KIND", help="once each")
    parser.set_defaults(step_delay=0.0)
    return parser.parse_args()


@Wrapper(soft_timeout=SOFT, hard_timeout=3 * SOFT, min_world_size=WORLD_SIZE)
def run(options: argparse.Namespace, call: CallWrapper | None = None) -> None:
    assert call
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    train.say(f"rank {dist.get_rank()} of {dist.get_world_size()}, pid {os.getpid()}, iteration {call.iteration}")
    training, held_out = train.digits()
    torch.manual_seed(options.seed)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 10)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=train.LEARNING_RATE)
    checkpoint = options.checkpoint_dir / "digits.pt"
    done = train.load(checkpoint, model, optimizer) if checkpoint.exists() else 0

    for epoch in range(done + 1, options.epochs + 1):
        optimizer.param_groups[0]["lr"] = train.LEARNING_RATE * (1 - (epoch - 1) / options.epochs)
        go_wrong(options, epoch, model)
        loss = train.train_epoch(epoch, training, model, optimizer, options)
        if math.isnan(loss):
            raise FloatingPointError(f"the loss of epoch {epoch} is not a number")
        if dist.get_rank() == 0:
            state = {"epoch": epoch, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            with call.atomic():
                train.replace(checkpoint, state)
            elastic.saved(epoch * train.steps_of_epoch(training, options))
        dist.barrier()
        train.say_once(f"epoch {epoch}/{options.epochs}  loss {loss:.4f}")

    if options.save_final and dist.get_rank() == 0:
        train.replace(options.save_final, model.module.state_dict())
    train.say_once(f"accuracy on {train.HELD_OUT} held-out digits: {train.accuracy(model.module, *held_out):.4f}")
    del model  # before the group: the last owner that drops a gloo group may wait for ever (torch 2.13)
    dist.destroy_process_group()


def go_wrong(options: argparse.Namespace, epoch: int, model: DistributedDataParallel) -> None:
    """Cause the fault of this epoch and rank, once: a file marks that it happened."""
    for fault in options.fault:
        at, rank, kind = fault.split(":")
        mark = options.checkpoint_dir / f"{at}.{kind}"
        if (epoch, dist.get_rank()) != (int(at), int(rank)) or mark.exists():
            continue
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        train.say(f"fault {kind} on rank {rank} in epoch {epoch}")
        if kind == "error":
            raise RuntimeError("an error, as --fault asked for")
        if kind == "hang":
            time.sleep(3_600)
        if kind == "nan":
            with torch.no_grad():
                next(model.module.parameters()).fill_(math.nan)
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    run(parse_options())
