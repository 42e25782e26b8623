"""A training loop as a wrapped function, written for nvidia-resiliency-ext; only the import line differs.

This is the use that its documentation recommends. Model, optimizer and the program's own store do not depend on the process
group: they are made once and outlive every restart. The function has the rest. Each iteration has a prefix of its own in the
store. As in that package, a thread of rank 0's process serves it. A program that must survive the loss of rank 0 leaves the
store out, since `init_process_group("gloo")` finds a new address in each iteration. Only the time-out frees a rank that
waits in the store for one that does not come, so it should be below the wrapper's `unwind_timeout`.

    elastic launch --nproc-per-node=2 --restart-scope=rank --max-restarts=3 loop.py --checkpoint FILE

`--fault STEP:RANK`, given once per iteration that must fail, raises an exception there.
"""

import argparse
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]
from torch.nn.parallel import DistributedDataParallel

import elastic.inprocess as inprocess  # was: import nvidia_resiliency_ext.inprocess as inprocess

SAVE_EVERY = 5


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train nothing in particular, and go on after a fault.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--fault", action="append", default=[], metavar="STEP:RANK")
    return parser.parse_args()


@inprocess.Wrapper(
    store_kwargs={"port": int(os.getenv("MASTER_PORT", "29500")) + 2},
    initialize=inprocess.initialize.RetryController(max_iterations=5),
    abort=inprocess.abort.AbortTorchDistributed(),
    health_check=inprocess.Compose(inprocess.health_check.CudaHealthCheck()),
    soft_timeout=timedelta(seconds=50),
    hard_timeout=timedelta(seconds=60),
)
def train(
    base_store: TCPStore,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    options: argparse.Namespace,
    call_wrapper: inprocess.CallWrapper | None = None,
) -> str:
    assert call_wrapper
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = PrefixStore(str(call_wrapper.iteration), base_store)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=10))
    parallel = DistributedDataParallel(model)

    done = 0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
    print(f"rank {rank} of {world_size} in iteration {call_wrapper.iteration} at step {done}", flush=True)

    for step in range(done, options.steps):
        if step and step % SAVE_EVERY == 0:
            dist.barrier()
            if rank == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                with call_wrapper.atomic():
                    torch.save(saved, options.checkpoint)
        call_wrapper.ping()
        if options.fault[call_wrapper.iteration :][:1] == [f"{step}:{rank}"]:
            raise RuntimeError(f"a fault at step {step} on rank {rank}")
        optimizer.zero_grad()
        generator = torch.Generator().manual_seed(step * world_size + rank)
        loss = parallel(torch.rand(8, 16, generator=generator)).square().mean()
        loss.backward()
        optimizer.step()

    del parallel  # before the group: the last owner that drops a gloo group may wait for ever (torch 2.13)
    dist.destroy_process_group()
    return f"trained {options.steps} steps"


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    base_store = TCPStore(
        host_name=os.environ["MASTER_ADDR"],
        port=int(os.environ["MASTER_PORT"]) + 1,
        world_size=int(os.environ["WORLD_SIZE"]),
        is_master=int(os.environ["RANK"]) == 0,
        multi_tenant=True,
        wait_for_workers=True,
        use_libuv=True,
    )
    print(train(base_store, model, optimizer, parse_options()), flush=True)


if __name__ == "__main__":
    main()
