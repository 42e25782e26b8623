"""What users of nvidia-resiliency-ext have, with the import changed: a loop and a whole program, each with faults."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from launches import Ended, Launch, Launcher

from elastic.adapters.rendezvous.reserved_ports import Reservation
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.wire import Address

EXAMPLES = Path(__file__).parents[2] / "examples/inprocess"
IMPORT_S = 180.0


def whereabouts(printed: str) -> set[str]:
    return set(re.findall(r"rank \d of \d in iteration \d at step \d+", printed))


def ended_of(running: Launch) -> Ended:
    """What takes its time is the import of torch, of which an optimizer has its own part, and its unloading."""
    running.prints("in iteration 0", IMPORT_S)
    running.prints("trained 20 steps")
    return running.ends()


def stood(iteration: int, step: int) -> set[str]:
    return {f"rank {rank} of 2 in iteration {iteration} at step {step}" for rank in (0, 1)}


@pytest.mark.long
def test_a_wrapped_loop_comes_through_faults_with_the_model_and_the_store_that_it_had(
    launch: Launcher, tmp_path: Path
) -> None:
    faults = ("--fault=7:1", "--fault=12:0")
    own = (EXAMPLES / "loop.py", f"--checkpoint={tmp_path}/loop.pt", *faults)
    ended = ended_of(launch("--restart-scope=rank", "--nproc-per-node=2", *own))
    assert ended.code == 0, ended.err
    assert whereabouts(ended.out) == stood(0, 0) | stood(1, 5) | stood(2, 10)
    assert ended.out.count("trained 20 steps") == 2


@pytest.fixture
def free_row() -> Iterator[int]:
    """The first of three ports that the kernel gives to nobody else; a store is served on the third."""
    with Reservation("localhost") as row:
        host, _ = serve(Address("localhost", row.endpoint.port + 2), True)
        assert host
        try:
            yield row.endpoint.port
        finally:
            host.close()


@pytest.mark.long
def test_a_wrapped_program_comes_through_a_fault_without_any_launcher(
    launch: Launcher, tmp_path: Path, free_row: int
) -> None:
    """Its own store is on the port after MASTER_PORT, its wrapper's on the one after that, where somebody serves it."""
    meeting = f"MASTER_ADDR=localhost MASTER_PORT={free_row} TORCHELASTIC_RUN_ID={uuid4().hex}"
    place = f"{meeting} WORLD_SIZE=2 LOCAL_RANK=$R RANK=$R"
    program = f"{sys.executable} {EXAMPLES}/whole.py --checkpoint={tmp_path}/whole.pt --fault=7:1"
    script = f"unset ELASTIC_RELAY; for R in 0 1; do {place} {program} & done; wait"
    ended = ended_of(launch("--no-python", "sh", "-c", script))
    assert whereabouts(ended.out) == stood(0, 0) | stood(1, 5), ended.err
    assert ended.out.count("trained 20 steps") == 2
