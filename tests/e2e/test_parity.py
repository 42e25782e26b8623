"""A few command lines under torchrun and under `elastic launch`; all of them are `make parity`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PARITY = Path(__file__).parents[2] / "benchmarks" / "parity.py"


@pytest.mark.long
def test_a_few_command_lines_differ_from_torchrun_in_nothing_without_a_reason(nothing_left: str) -> None:
    command = [sys.executable, str(PARITY), "--quick"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("\nok ") >= 2
