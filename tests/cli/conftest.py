"""Command lines in this process; no variable of the surroundings sets an option."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import commandlines
import pytest

from elastic.adapters.launch_settings import LaunchSettings
from elastic.cli.main import run
from elastic.cli.mistakes import USAGE


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PET_", "TORCH", "OMP_", "PYTHON_EXEC", "SLURM_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def settings() -> Callable[..., LaunchSettings]:
    """Return a reader of command lines in this environment."""
    return partial(commandlines.settings, os.environ)


@pytest.fixture
def mistake(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a runner of wrong command lines; it returns the one line of the answer."""

    def line(*arguments: str) -> str:
        code: Any = run(["launch", *arguments])
        out, err = capfd.readouterr()
        assert (code, out, err.count("\n")) == (USAGE, "", 1), (code, out, err)
        assert err.startswith("elastic: ")
        return err.removeprefix("elastic: ").removesuffix("\n")

    return line
