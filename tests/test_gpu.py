"""`make gpu` where there is no GPU: it says so, and fails nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gpu
import pytest

TOOL = Path(gpu.__file__)


@pytest.mark.skipif(gpu.DRIVER.exists(), reason="there is a GPU here")
def test_without_a_gpu_it_says_that_nothing_was_tried() -> None:
    done = subprocess.run([sys.executable, TOOL], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"nothing was tried: no NVIDIA GPU here ({gpu.DRIVER} is missing)\n"


def test_without_wheels_it_says_how_to_collect_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "WHEELS", tmp_path)
    assert gpu.lacking(anyway=True) == f"no wheels in {tmp_path}; collect them with a network: make gpu-wheels"
