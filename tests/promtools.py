"""Prometheus' own promtool, which judges metrics and rules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launches import TIMEOUT_S

PROMTOOL = shutil.which("promtool") or shutil.which(str(Path(sys.executable).with_name("promtool")))


def judged(*words: str | Path, text: str = "") -> str:
    """What promtool finds wrong; nothing if all is well. Skips the test by name where there is none."""
    if PROMTOOL is None:
        pytest.skip("there is no promtool here; write: make promtool")
    command = [PROMTOOL, *map(str, words)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    return "" if done.returncode == 0 else done.stdout + done.stderr
