"""Every test here needs an NVIDIA GPU, and a torch that uses it; without them it is skipped by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from launches import Launcher, launcher
from replays import complaints, replays

DRIVER = Path("/dev/nvidiactl")


@pytest.fixture
def on_gpu(nothing_left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    """Jobs that see one GPU."""
    if not DRIVER.exists():
        pytest.skip("no NVIDIA GPU here, so nothing of it was tried")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("torch cannot use the GPU here, so nothing of it was tried; install a torch with CUDA")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with launcher(tmp_path) as start:
        yield start
    assert complaints(replays(start.traces)) == []
