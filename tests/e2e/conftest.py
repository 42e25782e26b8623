"""Every test here starts the real command, and leaves no process behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from launches import Launcher, launcher


@pytest.fixture
def launch(nothing_left: str, tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as start:
        yield start
