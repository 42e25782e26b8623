"""Trains a small model again and again until stdin ends, each time from the same seed, and prints what came of it.

Threads prepare and compute beside it, a DataLoader has processes of its own, other programs are executed, and most of the
time is spent in C. Whatever interrupts one of them must change no bit of the weights.
"""

from __future__ import annotations

import hashlib
import select
import subprocess
import sys
import threading

import numpy
import torch


class Numbers(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(numpy.random.default_rng(index).normal(size=32).astype("float32"))


def hashes(into: list[str]) -> None:
    into.append(hashlib.pbkdf2_hmac("sha256", b"x", b"y", 20_000).hex())


def training() -> str:
    """Train from the same seed, and return a digest of all that came of it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    beside: list[list[str]] = [[] for _ in range(3)]
    threads = [threading.Thread(target=hashes, args=(each,)) for each in beside]
    for thread in threads:
        thread.start()
    told = b""
    for batch in torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, shuffle=True):
        for _ in range(20):
            optimizer.zero_grad()
            (model(batch) - batch.sum(1, keepdim=True)).square().mean().backward()
            optimizer.step()
        told = subprocess.run(["echo", "x" * 1_000], check=True, capture_output=True).stdout
        hashes(beside[0])
    for thread in threads:
        thread.join()
    found = hashlib.sha256(told + "".join(sorted({each for some in beside for each in some})).encode())
    for weights in model.parameters():
        found.update(weights.detach().numpy().tobytes())
    return found.hexdigest()


def main() -> None:
    torch.set_num_threads(1)
    is_over = False
    while not is_over:
        print(training(), flush=True)
        is_over = bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    main()
