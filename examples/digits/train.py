"""Train on handwritten digits in several processes: an ordinary script for torchrun.

The script assumes what every torchrun script may assume: rank, world size and rendezvous are in the environment, and it may
be killed at any moment and started again from the top. So all that must survive is in the checkpoint, which is replaced in
one step and never half written. All random numbers follow from (seed, epoch, rank), so an epoch that was cut off is done
again from its start, bit for bit. For one world size, a run with kills ends with exactly the weights of a run without.

It tells the launcher which step is done, and which is saved. Under any other launcher these calls do nothing.

The checkpoint directory must be the same for all ranks (one machine, or a shared file system).
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import time
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # as torch's optimizers do when one is made: up here a standby can do it early
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import elastic

HELD_OUT = 360  # of 1797 digits
LEARNING_RATE = 1e-2  # at the start; falls evenly to 0


def main() -> None:
    gc.freeze()  # at an exit Python looks through all that was imported: a second, in which a recovery waits
    options = parse_options()
    torch.set_num_threads(1)  # so that sums are made in one order
    dist.init_process_group("gloo")
    say(f"rank {dist.get_rank()} of {dist.get_world_size()}, pid {os.getpid()}, restart {restarts()}")
    train(options)
    dist.destroy_process_group()


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small network on scikit-learn's handwritten digits.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint-dir", type=Path, help="resume from here, and write here after every epoch")
    parser.add_argument("--save-final", type=Path, metavar="PATH", help="write the final weights to this file")
    parser.add_argument("--step-delay", type=float, default=0.0, metavar="S", help="sleep in every step")
    return parser.parse_args()


def train(options: argparse.Namespace) -> None:
    training, held_out = digits()
    torch.manual_seed(options.seed)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 10)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

    checkpoint = options.checkpoint_dir and options.checkpoint_dir / "digits.pt"
    epochs_done = load(checkpoint, model, optimizer) if checkpoint and checkpoint.exists() else 0
    if epochs_done:
        say_once(f"resumed after epoch {epochs_done} from {checkpoint}")

    for epoch in range(epochs_done + 1, options.epochs + 1):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - (epoch - 1) / options.epochs)
        loss = train_epoch(epoch, training, model, optimizer, options)
        if checkpoint and dist.get_rank() == 0:
            state = {"epoch": epoch, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            with elastic.busy("checkpoint", limit=60):
                replace(checkpoint, state)
            elastic.saved(epoch * steps_of_epoch(training, options))
        say_once(f"epoch {epoch}/{options.epochs}  loss {loss:.4f}  accuracy {accuracy(model.module, *held_out):.4f}")

    if options.save_final and dist.get_rank() == 0:
        replace(options.save_final, model.module.state_dict())
    say_once(f"accuracy on {HELD_OUT} held-out digits: {accuracy(model.module, *held_out):.4f}")


def train_epoch(
    epoch: int,
    training: tuple[Tensor, Tensor],
    model: DistributedDataParallel,
    optimizer: torch.optim.Optimizer,
    options: argparse.Namespace,
) -> float:
    """Train one epoch in an order that all ranks know; each rank takes its slice of every batch. Return the mean loss."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    pixels, labels = training
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(mix(options.seed, epoch)))
    torch.manual_seed(mix(options.seed, epoch, rank))  # for dropout, which differs by rank

    model.train()
    losses = []
    whole = len(order) - len(order) % options.batch_size
    done = (epoch - 1) * steps_of_epoch(training, options)
    for step, batch in enumerate(order[:whole].split(options.batch_size), done + 1):
        mine = batch[rank::world_size]
        loss = cross_entropy(model(pixels[mine]), labels[mine])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        elastic.progress(step)
        time.sleep(options.step_delay)
    return sum(losses) / len(losses)


def steps_of_epoch(training: tuple[Tensor, Tensor], options: argparse.Namespace) -> int:
    return int(len(training[1]) // options.batch_size)


def digits() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return training and held-out digits, (pixels, labels) each; the split does not depend on the training's seed."""
    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    x = torch.tensor(pixels, dtype=torch.float32)[order] / 16
    y = torch.tensor(labels, dtype=torch.int64)[order]
    return (x[HELD_OUT:], y[HELD_OUT:]), (x[:HELD_OUT], y[:HELD_OUT])


@torch.no_grad()
def accuracy(model: nn.Module, pixels: Tensor, labels: Tensor) -> float:
    model.eval()
    return float((model(pixels).argmax(dim=1) == labels).float().mean())


def load(checkpoint: Path, model: DistributedDataParallel, optimizer: torch.optim.Optimizer) -> int:
    """Load the checkpoint into model and optimizer, and return the number of epochs that are done."""
    state = torch.load(checkpoint, weights_only=True)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epoch"])


def replace(path: Path, content: dict[str, Any]) -> None:
    """Write the file in one step. It is on the disk at the return; a kill at any moment leaves the old file or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    with draft.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def mix(*numbers: int) -> int:
    """Return one seed for several numbers, the same in every process."""
    return random.Random(repr(numbers)).getrandbits(63)


def restarts() -> str:
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def say(line: str) -> None:
    print(line + "\n", end="", flush=True)  # one write, so that lines of several ranks stay whole


def say_once(line: str) -> None:
    if dist.get_rank() == 0:
        say(line)


if __name__ == "__main__":
    record(main)()
