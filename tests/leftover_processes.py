"""The fixture that fails a test whose processes outlive it. It needs no package but pytest and ours, and under `make gpu` it
is a plug-in (tools/gpu.py)."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import leftovers
import pytest

SETTLE_S = 90.0
"""How long what a test started may take to end by itself after the test, on a machine that is busy with something else."""


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Fail the test if a process that it started outlives it, and kill that process; yields the token they carry.

    The token stands in os.environ during the test; a test that makes an environment of its own passes it on.
    """
    token = uuid4().hex
    monkeypatch.setenv(leftovers.VARIABLE, token)
    yield token
    left = leftovers.left_after(token, SETTLE_S)
    leftovers.kill(left, token)
    if left:
        pytest.fail("left behind, killed now:\n" + "\n".join(f"  {process}" for process in left), pytrace=False)
