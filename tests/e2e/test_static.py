"""Nodes with ranks (--node-rank, --master-addr, --master-port), as torchrun's static rendezvous has them."""

from __future__ import annotations

from jobs import alive, codes, end, kill, run, worlds
from launches import PROGRAMS, Launch, Launcher


def node(launch: Launcher, rank: int, port: int, *options: str, program: str = "ranks.py") -> Launch:
    static = ("--nnodes=2", f"--node-rank={rank}", "--master-addr=localhost", f"--master-port={port}")
    return launch(*static, "--nproc-per-node=2", *options, PROGRAMS / program)


def test_ranks_are_those_of_the_nodes_whoever_comes_first(launch: Launcher, port: int) -> None:
    second = node(launch, 1, port)
    second.says("out of reach")
    first = node(launch, 0, port)
    told = [*first.hears(2), *second.hears(2)]
    assert [(worker.rank, worker.words) for worker in told] == [
        (rank, f"{rank // 2} {rank // 2}/2 local {rank % 2}/2 of 4 default {rank}/4") for rank in range(4)
    ]
    assert codes(end([second, first])) == [0, 0]


def test_a_worker_that_fails_restarts_both_nodes_and_its_meeting_place_is_not_the_master_s_port(
    launch: Launcher, port: int
) -> None:
    agents = [node(launch, rank, port, "--max-restarts=1", program="meeting_place.py") for rank in (0, 1)]
    workers = run(agents, each=2)
    assert all(str(port) not in worker.words for worker in workers)
    kill(workers[3].pid)
    again = run(agents, each=2)
    assert {worker.round for worker in again} == {1} and [worker.rank for worker in again] == [0, 1, 2, 3]
    assert not any(alive([worker]) for worker in workers) and len({words for _, words in worlds(again)}) == 1
    assert codes(end(agents)) == [0, 0]
