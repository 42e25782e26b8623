"""What programs do that a worker of another making could trip over: spawned loaders, pickles of `__main__`, RANK at import.

Fails on rank 0 in round 0 when the test says so.
"""

import os
import pickle

import reads_rank  # type: ignore[import-not-found]  # a module of the user's, beside this script
import stage
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index + 10 * int(os.environ["RANK"])])


def main() -> None:
    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    loader = DataLoader(Numbers(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    batches = [int(batch.sum()) for batch in loader]
    again = pickle.loads(pickle.dumps(Numbers()))
    stage.tell(reads_rank.RANK, int(total), batches, type(again).__module__, len(again), torch.get_num_threads())
    if stage.round == 0:
        stage.wait_for_gate(stage.rank)
        raise SystemExit(3)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
