"""Name the bad node of a group: nodes reduce in pairs, twice, with other partners the second time.

    elastic launch --nnodes=4 --rdzv-endpoint=HOST --rdzv-id=pairs -m elastic.examples.node_check.pairs [--limit=30]

A node alone cannot tell which end of a wire is bad, and an all-reduce of all only tells that somebody is. In two rounds each
node has two partners: it is bad if both of its pairs failed or were slow, while a good one failed at most with the bad
one. Use an even number of nodes, 4 or more; with one worker on each (more use one network each). NCCL where there
are GPUs, else gloo. Rank 0 prints the verdict. Exit code 0: all are healthy. 1: the last line names the bad ones.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

Pair = tuple[int, int]


def pairs(ranks: int, shift: int) -> tuple[Pair, ...]:
    """Return the pairs of neighbours, from rank `shift` on in a circle; of an odd number one rank stays out."""
    ring = [(rank + shift) % ranks for rank in range(ranks)]
    return tuple((ring[at], ring[at + 1]) for at in range(0, ranks - 1, 2))


def bad_ranks(rounds: Sequence[Mapping[Pair, float | None]], limit_s: float) -> list[int]:
    """Return the ranks whose every pair failed (None) or took longer than the limit. Of two that are bad only with each
    other nobody knows which it is, so both are named."""
    met: dict[int, list[bool]] = {}
    for times in rounds:
        for pair, took in times.items():
            for rank in pair:
                met.setdefault(rank, []).append(took is None or took > limit_s)
    return sorted(rank for rank, failed in met.items() if all(failed))


def reduced(store: Any, name: str, me: int, pair: Pair, size: int, limit_s: float) -> float | None:
    """Return the seconds that this pair took for five all-reduces; None if it did not get through."""
    import torch

    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    try:
        group = joined(store, name, pair.index(me), limit_s, on_gpu)
        values = torch.ones(size, device=device)
        began = time.monotonic()
        for _ in range(5):
            group.allreduce([values]).wait()
        if on_gpu:
            torch.cuda.synchronize(device)
        return time.monotonic() - began if bool((values == 32.0).all()) else None
    except (RuntimeError, OSError) as error:
        print(f"rank {me}, pair {pair}: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def joined(store: Any, name: str, place: int, limit_s: float, on_gpu: bool) -> Any:
    """Return a group of two. Raises RuntimeError if the partner does not come in time."""
    from torch import distributed

    dist: Any = distributed
    own, limit = dist.PrefixStore(name, store), timedelta(seconds=limit_s)
    own.set_timeout(limit)
    if not on_gpu:
        return dist.ProcessGroupGloo(own, place, 2, limit)
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = limit
    return dist.ProcessGroupNCCL(own, place, 2, options)


def all_are_here(store: Any, number: int, me: int, ranks: int, limit_s: float) -> None:
    """Begin a round together, so that nobody is late because of the partner before. Rank 0 waits for no one for ever."""
    store.set(f"here/{number}/{me}", "")
    if me == 0:
        try:
            store.wait([f"here/{number}/{rank}" for rank in range(ranks)], timedelta(seconds=4 * limit_s))
        except RuntimeError:
            print(f"round {number}: somebody has not come", file=sys.stderr)
        store.set(f"go/{number}", "")
    store.wait([f"go/{number}"], timedelta(seconds=8 * limit_s))


def main() -> int:
    """Take part in both rounds, and return the exit code."""
    parser = argparse.ArgumentParser(description="Name the bad node of a group by all-reduces in pairs.")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one pair [default: 30]")
    parser.add_argument("--size", type=int, default=1 << 22, help="numbers that are reduced [default: 4 million]")
    options = parser.parse_args()
    from torch import distributed

    me, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    patience, dist = timedelta(seconds=16 * options.limit), cast(Any, distributed)
    store = dist.TCPStore(host, port, ranks, is_master=me == 0, timeout=patience, wait_for_workers=False)
    store.set(f"host/{me}", socket.gethostname())
    for number in (0, 1):
        all_are_here(store, number, me, ranks, options.limit)
        pair = next((each for each in pairs(ranks, number) if me in each), None)
        took = reduced(store, f"round{number}/{pair[0]}", me, pair, options.size, options.limit) if pair else None
        store.set(f"took/{number}/{me}", "failed" if took is None else str(took))
    bad = verdict(store, ranks, options.limit) if me == 0 else []
    store.set("verdict", ",".join(map(str, bad))) if me == 0 else store.wait(["verdict"], patience)
    store.add("done", 1)
    while me == 0 and store.add("done", 0) < ranks:
        time.sleep(0.01)
    return 1 if bad else 0


def heard(store: Any, key: str, limit_s: float) -> float | None:
    """Return the seconds that a rank has told; None if it failed, or says nothing."""
    try:
        store.wait([key], timedelta(seconds=3 * limit_s))
        return None if (told := store.get(key).decode()) == "failed" else float(told)
    except RuntimeError:
        return None


def verdict(store: Any, ranks: int, limit_s: float) -> list[int]:
    """Gather what the pairs have told, print it, and return the ranks that are bad. A pair that says nothing failed."""
    rounds: list[dict[Pair, float | None]] = []
    for number in (0, 1):
        times: dict[Pair, float | None] = {}
        for pair in pairs(ranks, number):
            told = [heard(store, f"took/{number}/{rank}", limit_s) for rank in pair]
            times[pair] = None if None in told else max(filter(None, told), default=0.0)
            shown = "failed" if times[pair] is None else f"{times[pair]:.3f} s"
            print(f"round {number}: ranks {pair[0]} and {pair[1]}: {shown}")
        rounds.append(times)
    bad = bad_ranks(rounds, limit_s)
    for rank in bad:
        print(f"bad: rank {rank} on {store.get(f'host/{rank}').decode()}")
    if not bad:
        print("all healthy")
    sys.stdout.flush()
    return bad


if __name__ == "__main__":
    sys.exit(main())
