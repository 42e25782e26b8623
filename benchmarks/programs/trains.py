"""A training step, again and again: a block of steps for each line on stdin, answered by the wall and CPU time of one."""

from __future__ import annotations

import sys
import time

import torch

STEPS = 200


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, wanted = torch.randn(64, 128), torch.randint(0, 10, (64,))
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), wanted).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(wall / STEPS, cpu / STEPS, flush=True)


if __name__ == "__main__":
    main()
