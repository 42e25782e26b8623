"""Injections by a signal from another process into whatever user code may be doing: none lands where it may not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "programs" / "injected.py"
SPANS = int(os.environ.get("ELASTIC_INJECTIONS", "3000"))


@pytest.mark.usefixtures("nothing_left")
def test_no_injection_lands_outside_the_user_s_code_or_in_an_atomic_section() -> None:
    command = [sys.executable, str(PROGRAM), str(SPANS), "1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    came_of = json.loads(ran.stdout)
    assert sum(came_of.values()) == SPANS
    assert set(came_of) == {"injected", "returned", "failed"}, "the races did not happen"
    assert came_of["injected"] > SPANS / 2
