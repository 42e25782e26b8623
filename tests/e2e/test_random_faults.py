"""A job on three etcd members through random faults, one after another and some at once; `make soak` does 1,000 of them."""

from __future__ import annotations

import os
from random import Random

import pytest
from etcd_members import wait_until
from etcdlab import Lab
from faults import Chaos

STEPS, SEED = 20, 4
"""What is done where nobody asks for more: the same faults each time, though not at the same moments."""


def test_random_faults_lose_nothing(
    on_etcd: Lab, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    """ELASTIC_CHAOS_STEPS=1000 makes the long run, with other faults each time; ELASTIC_CHAOS_SEED chooses them."""
    asked = os.environ.get("ELASTIC_CHAOS_STEPS")
    steps = int(asked or STEPS)
    seed = int(os.environ.get("ELASTIC_CHAOS_SEED") or (int.from_bytes(os.urandom(4)) if asked else SEED))
    chaos = Chaos(on_etcd, Random(seed))
    with capfd.disabled():
        request.config.get_terminal_writer().line(f"ELASTIC_CHAOS_SEED={seed} ELASTIC_CHAOS_STEPS={steps}")
    on_etcd.start()
    try:
        for _ in range(steps):
            chaos.step()
            assert {name for name, agent in on_etcd.agents.items() if agent.has_ended()} == chaos.killed
        chaos.mend()
        on_etcd.mend()
        wait_until(on_etcd.has_whole_world, "all nodes in one world", on_etcd.account)
        on_etcd.ends()
    except BaseException as error:
        error.add_note("\n".join([f"ELASTIC_CHAOS_SEED={seed} ELASTIC_CHAOS_STEPS={steps}", *chaos.told]))
        raise
