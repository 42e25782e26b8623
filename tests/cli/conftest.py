"""Command lines run in this process; no option is set by the surroundings."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from elastic.adapters.launch_settings import LaunchSettings
from elastic.cli import nodes
from elastic.cli.launch import launch
from elastic.cli.main import run
from elastic.cli.mistakes import USAGE
from elastic.cli.program import script_program
from elastic.cli.settings import launch_settings

pytest.register_assert_rewrite("narration")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PET_", "TORCH", "OMP_", "PYTHON_EXEC"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def settings() -> Callable[..., LaunchSettings]:
    """The settings that a command line makes; nothing starts."""

    def parse(*arguments: str) -> LaunchSettings:
        context = launch.make_context("launch", list(arguments))
        program = script_program(context.params, os.environ)
        return launch_settings(context.params, program, nodes.place(context.params, os.environ), os.environ)

    return parse


@pytest.fixture
def mistake(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one line that a wrong command line is answered with."""

    def line(*arguments: str) -> str:
        code: Any = run(["launch", *arguments])
        out, err = capfd.readouterr()
        assert (code, out, err.count("\n")) == (USAGE, "", 1), (code, out, err)
        assert err.startswith("elastic: ")
        return err.removeprefix("elastic: ").removesuffix("\n")

    return line
