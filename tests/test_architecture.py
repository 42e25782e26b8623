"""ARCHITECTURE.md shows what the code does, not what it once did."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from elastic.core import group, inprocess

ARCHITECTURE = Path(__file__).parent.parent / "ARCHITECTURE.md"


@pytest.mark.parametrize("machine", [group, inprocess], ids=["worker group", "call"])
def test_the_diagram_of_a_machine_is_the_one_that_its_table_draws(machine: ModuleType) -> None:
    assert f"```mermaid\n{machine.diagram()}\n```" in ARCHITECTURE.read_text(), f"paste this:\n{machine.diagram()}"
