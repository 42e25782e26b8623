"""The differences from torchrun are written down once: docs/migrate.md shows them, benchmarks/parity.py judges by them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LINES_MIN = 80


def read(path: str, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads((ROOT / path).read_text())[table]
    return rows


DIFFERENCES = read("docs/differences.toml", "difference")
LINES = read("benchmarks/parity.toml", "line")


def table(kind: str) -> str:
    those = [row for row in DIFFERENCES if row["kind"] == kind]
    rows = [[row[name] for name in ("topic", "torchrun", "elastic", "why")] for row in those]
    head = ["topic", "torchrun 2.13", "`elastic launch`", "why"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


@pytest.mark.parametrize("kind", ["breaks", "better", "rare"])
def test_the_page_for_those_who_change_over_shows_every_difference_with_its_reason(kind: str) -> None:
    assert table(kind) in (ROOT / "docs/migrate.md").read_text(), f"paste this:\n{table(kind)}"


def test_each_difference_is_of_a_kind() -> None:
    assert {row["kind"] for row in DIFFERENCES} == {"breaks", "better", "rare"}


def test_each_difference_has_a_name_of_its_own_and_patterns_that_can_be_read() -> None:
    names = [row["id"] for row in DIFFERENCES]
    assert len(set(names)) == len(names)
    for pattern in [pattern for row in DIFFERENCES for pattern in row.get("shows", ())]:
        re.compile(pattern)


def test_the_side_by_side_run_has_lines_enough_some_with_two_agents_and_names_known_differences_only() -> None:
    shown = {row["id"] for row in DIFFERENCES if row.get("shows") and not row.get("everywhere")}
    assert len(LINES) >= LINES_MIN
    assert sum(len(line.get("agents", ())) > 1 for line in LINES) >= 5
    assert {name.removesuffix("?") for line in LINES for name in line.get("because", ())} <= shown


def test_nothing_in_a_line_is_misspelt() -> None:
    known = {"run", "because", "env", "agents", "signal", "workers", "quick", "patience_s"}
    assert [line["run"] for line in LINES if not set(line) <= known] == []
