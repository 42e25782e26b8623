"""A training of a few steps in which one rank fails: raises.py HOW RANK. Its peers then fail of the closed connections."""

from __future__ import annotations

import atexit
import code
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

FAILS_AT = 2
CAUSE = "the real cause"


def fails() -> None:
    raise RuntimeError(CAUSE)


def all_reduce() -> Callable[[], None]:
    import torch
    import torch.distributed as dist

    tensor = torch.ones(1000)
    return lambda: dist.all_reduce(tensor)


def ddp() -> Callable[[], None]:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    return lambda: model(torch.ones(4, 8)).sum().backward()


def fsdp2() -> Callable[[], None]:
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    for each in (*model, model):
        fully_shard(each, mesh=mesh)
    return lambda: model(torch.ones(4, 8)).sum().backward()


STEPS = {"ddp": ddp, "fsdp2": fsdp2}


def batches(fails_in_loader: bool) -> Iterator[object]:
    """Batches of a DataLoader with a worker process, which dies if it fails."""
    from torch.utils.data import DataLoader, Dataset

    class Data(Dataset[int]):
        def __len__(self) -> int:
            return 1000

        def __getitem__(self, index: int) -> int:
            if fails_in_loader and index == 4:
                os.kill(os.getpid(), 9)
            return index

    return iter(DataLoader(Data(), batch_size=None, num_workers=1))


def exits() -> None:
    sys.exit(7)


def hangs_in_atexit() -> None:
    atexit.register(time.sleep, 10**6)
    fails()


def leaves_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(10**6,)).start()
    fails()


FAILURES = {"exit": exits, "atexit": hangs_in_atexit, "thread": leaves_a_thread}


def main(how: str, odd: str) -> None:
    import torch.distributed as dist

    is_odd = os.environ["RANK"] == odd
    dist.init_process_group("gloo")
    step = STEPS.get(how, all_reduce)()
    loaded = batches(is_odd) if how == "loader" else iter(())
    for number in range(1000):
        if how == "loader":
            next(loaded)
        elif is_odd and how == "repl" and number < FAILS_AT:
            code.InteractiveConsole().push("raise ValueError('of a console that goes on')")
        elif is_odd and number == FAILS_AT:
            FAILURES.get(how, fails)()
        step()


if __name__ == "__main__":
    if sys.argv[3:] == ["record"]:
        from torch.distributed.elastic.multiprocessing.errors import record

        main = record(main)
    main(*sys.argv[1:3])
