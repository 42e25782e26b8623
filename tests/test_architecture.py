"""ARCHITECTURE.md shows what the code does, not what it once did."""

from __future__ import annotations

from pathlib import Path

from elastic.core.group import diagram

ARCHITECTURE = Path(__file__).parent.parent / "ARCHITECTURE.md"


def test_the_diagram_of_the_worker_group_is_the_one_that_its_table_draws() -> None:
    assert f"```mermaid\n{diagram()}\n```" in ARCHITECTURE.read_text(), f"paste this:\n{diagram()}"
