"""A secret of the agent stays its own: no program that it starts inherits it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from elastic.adapters.secret_variables import ETCD_PASSWORD, STORE_TOKEN, without_secrets
from elastic.adapters.workers.watch.reaper_process import ReaperProcess

ROOT = Path(__file__).parents[2]
STARTERS = {"subprocess.Popen", "subprocess.run", "Popen"}


def starts(tree: ast.Module) -> Iterator[tuple[int, bool]]:
    """The lines on which a program is started, and if its environment is chosen."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTERS:
            yield node.lineno, any(keyword.arg == "env" for keyword in node.keywords)


def test_every_program_that_an_adapter_starts_has_an_environment_that_was_chosen() -> None:
    found = {
        f"{file.relative_to(ROOT)}:{line}": chosen
        for file in sorted((ROOT / "adapters").rglob("*.py"))
        for line, chosen in starts(ast.parse(file.read_text()))
    }
    assert len(found) >= 5
    assert [place for place, chosen in found.items() if not chosen] == [], "give it env=without_secrets()"


def test_the_reaper_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ETCD_PASSWORD, "hidden-from-helpers")
    monkeypatch.setenv(STORE_TOKEN, "hidden-from-helpers")
    reaper = ReaperProcess()
    reaper.start()
    try:
        assert b"hidden-from-helpers" not in Path(f"/proc/{reaper.pid}/environ").read_bytes()
    finally:
        reaper.close()


def test_all_else_is_inherited() -> None:
    assert without_secrets({"PATH": "/bin", ETCD_PASSWORD: "x", STORE_TOKEN: "y"}) == {"PATH": "/bin"}
