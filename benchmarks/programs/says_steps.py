"""Train a small network: turns of steps that say their progress, that also save, and bare ones, one after the other. Write
the seconds of each into a file."""

import json
import sys
from pathlib import Path
from time import perf_counter

import torch

import elastic

TURNS, STEPS = int(sys.argv[1]), 20
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
batch, wanted = torch.randn(32, 64), torch.randn(32, 1)


def train() -> None:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(batch), wanted).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


took: dict[str, list[float]] = {"progress": [], "busy": [], "bare": []}
done = 0
for turn in range(TURNS + 1):
    for name, each in took.items():
        began = perf_counter()
        for _ in range(STEPS):
            train()
            if name != "bare":
                elastic.progress(done := done + 1)
        if name == "busy":
            with elastic.busy("checkpoint", limit=60):
                pass
            elastic.saved(done)
        if turn:
            each.append(perf_counter() - began)
Path(sys.argv[2]).write_text(json.dumps(took))
