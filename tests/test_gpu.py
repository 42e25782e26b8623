"""`make gpu` where there is no GPU: it says so, and fails nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import gpu
import pytest
from processes import dies

TOOL = Path(gpu.__file__)


@pytest.mark.skipif(gpu.DRIVER.exists(), reason="there is a GPU here")
def test_without_a_gpu_it_says_that_nothing_was_tried() -> None:
    done = subprocess.run([sys.executable, TOOL], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"nothing was tried: no NVIDIA GPU here ({gpu.DRIVER} is missing)\n"


def test_without_ensurepip_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    assert (gpu.lacking(anyway=True) or "").startswith(f"{sys.executable} has no ensurepip; with make write GPU_BY=")


def test_what_the_tests_have_started_is_killed_with_them() -> None:
    asked = ["sh", "-c", "trap '' INT; sleep 1000 >/dev/null & echo $!; wait"]
    with gpu.session(asked, stdout=subprocess.PIPE) as process:
        assert process.stdout
        child = int(process.stdout.readline())
    assert process.returncode == -signal.SIGKILL
    assert dies(child)


def test_without_wheels_it_says_how_to_collect_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "WHEELS", tmp_path)
    assert gpu.lacking(anyway=True) == f"no wheels in {tmp_path}; collect them with a network: make gpu-wheels"
