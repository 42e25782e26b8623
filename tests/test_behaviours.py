"""What the wrapper does is held by tests: inprocess_behaviours.toml has a row for each thing, and no row lies."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from functools import cache
from pathlib import Path

from elastic.core.inprocess.words import Reason
from elastic.inprocess import CallWrapper, Wrapper

TESTS = Path(__file__).parent
PAGE = tomllib.loads((TESTS / "inprocess_behaviours.toml").read_text())


@cache
def claims_of(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_parameter_every_member_and_every_end_has_a_row() -> None:
    members = {name for name in vars(CallWrapper) if not name.startswith("_")}
    parameters = inspect.signature(Wrapper).parameters.values()
    assert set(PAGE["parameters"]) == {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert set(PAGE["call"]) == members
    assert set(PAGE["ends"]) == {reason.name for reason in Reason}


def test_every_event_of_nodes_on_the_page_has_a_row() -> None:
    page = (TESTS.parent / "docs/inprocess.md").read_text()
    section = page.partition("## When nodes come and go")[2].partition("\n## ")[0]
    events = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    assert events[:2] == ["what happens", "---"]
    assert events[2:] == list(PAGE["nodes"])


def test_every_row_names_tests_that_there_are() -> None:
    rows = {f"{table} {row}": tests for table, rows in PAGE.items() for row, tests in rows.items()}
    assert [row for row, tests in rows.items() if not tests] == []
    named = [tuple(name.split("::")) for tests in rows.values() for name in tests]
    assert [(file, test) for file, test in named if test not in claims_of(file)] == []
