"""The variables of torch that ask for file timers, for stuck workers and for a health check."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from elastic.adapters.launch_settings import WatchdogSettings
from elastic.cli.agent_settings import watchdog_settings
from elastic.cli.values import stacks_signal


def test_nothing_is_watched_unless_a_variable_asks_for_it() -> None:
    assert watchdog_settings({}) == WatchdogSettings()
    quiet = {
        "TORCHELASTIC_ENABLE_FILE_TIMER": "0",
        "TORCHELASTIC_TIMER_FILE": "/x",
        "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "0",
        "TORCHELASTIC_HEALTH_CHECK_PORT": "",
    }
    assert watchdog_settings(quiet) == WatchdogSettings()


def test_each_watchdog_is_asked_for_by_its_variable() -> None:
    said = {
        "TORCHELASTIC_ENABLE_FILE_TIMER": "1",
        "TORCHELASTIC_TIMER_FILE": "/x",
        "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "2.5",
        "TORCHELASTIC_HEALTH_CHECK_PORT": "8080",
    }
    assert watchdog_settings(said) == WatchdogSettings("/x", 2.5, 8080)


def test_the_health_port_is_this_host_s_alone_unless_an_address_is_named() -> None:
    assert watchdog_settings({"TORCHELASTIC_HEALTH_CHECK_PORT": "8080"}).health_host == "127.0.0.1"
    for text, host in (("0.0.0.0:8080", "0.0.0.0"), ("[::]:8080", "::")):
        said = watchdog_settings({"TORCHELASTIC_HEALTH_CHECK_PORT": text})
        assert (said.health_host, said.health_port) == (host, 8080)


def test_a_timer_pipe_without_a_name_gets_a_random_one_in_tmpdir(tmp_path: Path) -> None:
    given = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TMPDIR": str(tmp_path)}
    names = {watchdog_settings(given).timer_file for _ in range(2)}
    assert len(names) == 2 and all(name and name.startswith(f"{tmp_path}/watchdog_timer_") for name in names)
    name = watchdog_settings({**given, "TMPDIR": str(tmp_path / "not_there")}).timer_file
    assert name and name.startswith("/tmp/watchdog_timer_")


def test_a_bad_value_of_a_watchdog_s_variable_is_a_mistake(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCHELASTIC_HEALTH_CHECK_PORT", "http")
    assert mistake("x") == "TORCHELASTIC_HEALTH_CHECK_PORT=http: write a port, 1 to 65535"
    monkeypatch.delenv("TORCHELASTIC_HEALTH_CHECK_PORT")
    monkeypatch.setenv("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "soon")
    assert mistake("x") == (
        "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=soon: write a number of seconds, 0 or more (0 for never)"
    )
    monkeypatch.delenv("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT")
    (tmp_path / "mine").write_text("precious")
    monkeypatch.setenv("TORCHELASTIC_ENABLE_FILE_TIMER", "1")
    monkeypatch.setenv("TORCHELASTIC_TIMER_FILE", f"{tmp_path}/mine")
    assert mistake("x") == f"TORCHELASTIC_TIMER_FILE={tmp_path}/mine: file exists; name a new file"


def test_a_taken_health_port_is_a_mistake_and_the_timer_pipe_is_removed(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCHELASTIC_ENABLE_FILE_TIMER", "1")
    monkeypatch.setenv("TORCHELASTIC_TIMER_FILE", f"{tmp_path}/timers")
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("TORCHELASTIC_HEALTH_CHECK_PORT", str(port))
        said = f"TORCHELASTIC_HEALTH_CHECK_PORT={port}: address already in use; name another port"
        assert mistake("x") == said
    assert not (tmp_path / "timers").exists()


def test_the_signal_of_the_stacks_is_a_real_time_signal_or_off(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [stacks_signal(text) for text in ("34", "64", "off")] == [34, 64, None]
    for wrong in ("33", "65", "on", "-1", "SIGUSR1", "5\u0665"):
        monkeypatch.setenv("ELASTIC_STACKS_SIGNAL", wrong)
        assert (
            mistake("x") == f"ELASTIC_STACKS_SIGNAL={wrong}: write the number of a real-time signal, 34 to 64, or off"
        )
