"""S13: the same history gives the same bytes in any order of sets."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import history

SEEDS, STEPS = 20, 100


@cache
def digests_under(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    program = [sys.executable, str(Path(history.__file__)), str(SEEDS), str(STEPS)]
    return subprocess.run(program, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_same_history_gives_the_same_bytes_under_any_hash_seed() -> None:
    assert digests_under("0") == digests_under("1") == digests_under("4242")


def test_another_history_gives_other_bytes() -> None:
    assert len(set(digests_under("0").splitlines())) == SEEDS
