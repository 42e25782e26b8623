"""The token of a job's agents is given by a file or a variable, never on the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from elastic.adapters.secret_variables import STORE_TOKEN
from elastic.adapters.store.secret import Secret
from elastic.cli.tokens import store_token

TOKEN = "correct horse battery staple"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("another horse, another staple\n")
    path.chmod(0o600)
    return path


def test_without_file_and_variable_there_is_no_token() -> None:
    environment = {"HOME": "/"}
    assert store_token({}, environment) is None
    assert environment == {"HOME": "/"}


def test_the_variable_is_read_and_removed_from_the_environment() -> None:
    environment = {"HOME": "/", STORE_TOKEN: TOKEN}
    assert store_token({}, environment) == Secret(TOKEN.encode())
    assert environment == {"HOME": "/"}


def test_a_file_overrides_the_variable_which_is_removed_all_the_same(file: Path) -> None:
    environment = {STORE_TOKEN: TOKEN}
    assert store_token({"token_file": str(file)}, environment) == Secret(b"another horse, another staple")
    assert environment == {}


def test_no_worker_inherits_the_token(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from elastic.cli.main import run

    monkeypatch.setenv(STORE_TOKEN, TOKEN)
    assert run(["launch", "--no-python", "env"]) == 0
    out, err = capfd.readouterr()
    assert "ELASTIC_ROUND=0" in out
    assert STORE_TOKEN not in out and TOKEN not in out + err
    assert STORE_TOKEN not in os.environ


GIVEN = [
    f"token={TOKEN}",
    f"join_timeout=5, Token = {TOKEN}",
    f"nonsense,token={TOKEN}",
    f"TOKEN={TOKEN},last_call",
]


@pytest.mark.parametrize("conf", GIVEN)
@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_token_on_the_command_line_is_refused_and_not_repeated(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch, conf: str, by: str
) -> None:
    if by == "variable":
        monkeypatch.setenv("PET_RDZV_CONF", conf)
    answer = mistake(*([f"--rdzv-conf={conf}"] if by == "option" else []), "x")
    assert answer == (
        "--rdzv-conf: token: everybody can read a command line; write token_file=FILE, or set ELASTIC_STORE_TOKEN"
    )


def test_a_token_file_that_is_missing_or_open_to_everybody_is_a_mistake(
    mistake: Callable[..., str], file: Path
) -> None:
    answer = mistake(f"--rdzv-conf=token_file={file}x", "x")
    assert answer == f"--rdzv-conf: token_file={file}x: no such file or directory; name a file that holds the token"
    file.chmod(0o644)
    answer = mistake(f"--rdzv-conf=token_file={file}", "x")
    assert answer == (
        f"--rdzv-conf: token_file={file}: everybody on this host can read or change it (mode 644); "
        f"write chmod o= {file}"
    )


@pytest.mark.parametrize("text", ["", "  \n", "short"])
def test_a_variable_without_a_token_is_a_mistake(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A script that failed to read its secret must not start a job that everybody can write to."""
    monkeypatch.setenv(STORE_TOKEN, text)
    answer = mistake("x")
    assert answer.startswith(f"ELASTIC_STORE_TOKEN: has {len(text.strip())} bytes, and 16 to 4096 are wanted; ")
    assert "openssl rand" in answer


def test_token_file_is_a_known_key(
    capfd: pytest.CaptureFixture[str], file: Path, settings: Callable[..., object]
) -> None:
    settings(f"--rdzv-conf=token_file={file}", "x")
    assert capfd.readouterr().err == ""
    settings(f"--rdzv-conf=tokenfile={file}", "x")
    assert "did you mean token_file?" in capfd.readouterr().err
