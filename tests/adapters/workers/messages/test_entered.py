"""A worker says that it has entered a wrapped call; its agent asks when the worker has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elastic.adapters.workers.messages.entered import Entered, say_entered


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path / "relay")
    monkeypatch.setenv("ELASTIC_RELAY", path)
    monkeypatch.setenv("LOCAL_RANK", "1")
    return path


def test_what_a_worker_says_stands_until_all_workers_start_anew(relay: str, tmp_path: Path) -> None:
    entered = Entered(relay)
    entered.begin((0, 1))
    assert not entered.has(1)
    say_entered()
    say_entered()
    assert (entered.has(0), entered.has(1)) == (False, True)
    entered.begin((0, 1))
    assert not entered.has(1)
    say_entered()
    entered.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "value"), [("ELASTIC_RELAY", ""), ("LOCAL_RANK", ""), ("LOCAL_RANK", "../x")])
def test_without_an_agent_and_with_another_local_rank_nothing_is_written(
    relay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    say_entered()
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_made_ends_no_call(relay: str, tmp_path: Path) -> None:
    (tmp_path / "entered.1").symlink_to("/dev/null")
    say_entered()
    Entered("").begin((0,))
    assert not Entered("").has(0)
