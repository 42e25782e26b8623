"""An `elastic store` that cannot serve: one line with option, reason and remedy, and exit code 2."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

import pytest

from elastic.cli.main import run
from elastic.cli.mistakes import USAGE

ELSEWHERE = "192.0.2.1"
"""An address for documentation: no host has it."""


@pytest.fixture
def answer(capfd: pytest.CaptureFixture[str], nothing_left: str) -> Callable[..., str]:
    def line(*arguments: str) -> str:
        assert run(["store", *arguments]) == USAGE
        out, err = capfd.readouterr()
        assert out == "" and err.startswith("elastic: ") and err.count("\n") == 1
        return err.removeprefix("elastic: ").removesuffix("\n")

    return line


def test_an_endpoint_must_be_named(answer: Callable[..., str]) -> None:
    for arguments in ((), ("--endpoint=",)):
        assert answer(*arguments) == "--endpoint is missing: write elastic store --endpoint=HOST:29400"
    assert (
        answer("--endpoint=a:b")
        == "--endpoint=a:b: write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets"
    )


def test_a_taken_port_is_a_mistake(answer: Callable[..., str]) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        assert answer(f"--endpoint=localhost:{port}") == (
            f"--endpoint=localhost:{port}: somebody listens there already; name another port, or 0 for any that is free"
        )


def test_an_address_of_another_host_is_a_mistake(answer: Callable[..., str]) -> None:
    assert answer(f"--endpoint={ELSEWHERE}") == (
        f"--endpoint={ELSEWHERE}:29400: cannot assign requested address; name an address or name of this host"
    )
    unknown = answer("--endpoint=no-such-host.invalid:1")
    assert unknown.startswith("--endpoint=no-such-host.invalid:1: ")
    assert unknown.endswith("; name an address or name of this host")


def test_without_torch_the_answer_is_to_install_it(answer: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    said = answer("--endpoint=localhost:0")
    assert said.startswith("--endpoint=localhost:0: ") and said.endswith(
        "needs torch; install elastic-launch as before, with [torch] behind it"
    )


def test_store_is_in_the_list_of_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "\n  store " in capfd.readouterr().out
