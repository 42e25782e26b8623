"""The register on real stores under faults: what many clients were told can be told in one order.

tests/models/linearizability.py is the check, and property_tests/test_linearizability.py the check of the check.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from linearizability import Write
from recordings import etcd, record, tcpstore

STEPS, SEED = 12, 1
"""What is done where nobody asks for more: the same faults each time, though not at the same moments."""
ROUND = 25
"""So many faults happen to one register."""


@pytest.mark.long
@pytest.mark.parametrize("store", ["tcpstore", "etcd"])
def test_what_clients_were_told_can_be_told_in_one_order(
    store: str,
    nothing_left: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """ELASTIC_REGISTER_STEPS=1000 makes the long run, with other faults each time; ELASTIC_REGISTER_SEED chooses them."""
    asked = os.environ.get("ELASTIC_REGISTER_STEPS")
    left = int(asked or STEPS)
    seed = int(os.environ.get("ELASTIC_REGISTER_SEED") or (int.from_bytes(os.urandom(4)) if asked else SEED))
    while left > 0:
        steps, folder = min(left, ROUND), tmp_path / str(seed)
        recording, chaos = record(tcpstore() if store == "tcpstore" else etcd(folder), folder / "told", seed, steps)
        told = f"{store}: ELASTIC_REGISTER_SEED={seed} ELASTIC_REGISTER_STEPS={steps}: {recording}"
        with capfd.disabled():
            request.config.get_terminal_writer().line(told)
        assert recording.found is None, "\n".join([str(recording.found), f"histories: {folder}", *chaos.told])
        assert any(isinstance(each.effect, Write) and each.ended_at for each in recording.history)
        left, seed = left - steps, seed + 1
