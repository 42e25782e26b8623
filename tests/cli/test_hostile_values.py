"""Values that nobody means, for every option, variable and field: accepted, or answered with name, value and remedy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import click
import commandlines
import pytest

from elastic import LaunchSettings
from elastic.cli import places, simulate_options, tokens
from elastic.cli.agent_settings import launch_settings, script_program
from elastic.cli.launch import launch, telemetry
from elastic.cli.main import run
from elastic.cli.mistakes import USAGE, WORD_MAX, one_line
from elastic.cli.simulate import simulate
from elastic.cli.store import store

HOSTILE = (
    *("", " ", "word", "-1", "0", "1.5", "nan", "inf", "1e400", "9" * 30, "9" * 5_000, "x" * 5_000, "é", "٣", "\udcff"),
    *(
        "a\nb",
        "\x1b[31m",
        "1,2,",
        ",",
        ":",
        "::1",
        "[1]",
        "a..b",
        "=",
        "a=",
        "/nowhere/x/y",
        "/dev/full",
        "/proc/version",
    ),
    *("/", "${local_rank}", "$", "%s", "{}", "--", "-"),
)
REMEDY = re.compile(r"\b(write|name|leave|install|unset|set)\b|at most \d+ |known: |makes one")
OPTIONS = [param for param in launch.params if isinstance(param, click.Option)]
ELSEWHERE = ("/dev/full", "/proc/version", "/nowhere/x/y")


@pytest.fixture(autouse=True)
def nothing_is_looked_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def said(ask: Callable[[], object]) -> str | None:
    """Return the line of the mistake; None if the value was accepted."""
    try:
        ask()
    except click.ClickException as mistake:
        return one_line(mistake)
    return None


def is_answer(line: str | None, name: str) -> bool:
    """Return True for one line with the name and a remedy, and for None: the value was accepted."""
    return line is None or bool(
        line.startswith("elastic: ")
        and line.isprintable()
        and len(line) < 3 * WORD_MAX
        and name in line
        and REMEDY.search(line)
    )


def asked(*arguments: str, **variables: str) -> None:
    """Do what `elastic launch` does with its command line before anything starts."""
    environment = {**variables}
    options = commandlines.options(*arguments)
    where = places.place(options, environment, tokens.store_token(options.rdzv_conf, environment))
    settings = launch_settings(options, script_program(options, "x", (), environment), where, environment)
    for log in telemetry(options, settings, _clock(), lambda text: None):
        log.close()


def _clock() -> Any:
    from elastic.adapters.clock import SystemClock

    return SystemClock()


def is_looked_up(name: str, text: str) -> bool:
    """Return True if torch is asked for a kind of device, or a resolver for a host: both take their time."""
    kind = name == "nproc_per_node" and re.fullmatch(r"[a-z]\w*", text) is not None
    host = name in ("rdzv_endpoint", "master_addr") and re.fullmatch(r"[\w.-]+|::1", text) is not None
    return kind or (host and ".." not in text and len(text) < 64)


@pytest.mark.parametrize("option", [each for each in OPTIONS if not each.is_flag], ids=lambda each: str(each.name))
def test_a_hostile_value_of_an_option_is_answered_with_the_option_and_a_remedy(option: click.Option) -> None:
    longest = max(option.opts, key=len)
    lines = {
        text: said(lambda text=text: asked(f"{longest}={text}"))  # type: ignore[misc]
        for text in HOSTILE
        if not is_looked_up(option.name or "", text)
    }
    assert {text: line for text, line in lines.items() if not is_answer(line, longest)} == {}


@pytest.mark.parametrize("option", [each for each in OPTIONS if each.envvar], ids=lambda each: str(each.envvar))
def test_a_hostile_value_of_a_variable_is_answered_with_the_variable_and_a_remedy(
    option: click.Option, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = str(option.envvar)
    wrong = {}
    for text in HOSTILE:
        if not is_looked_up(option.name or "", text):
            monkeypatch.setenv(variable, text)
            line = said(asked)
            if not is_answer(line, variable) and not is_answer(line, max(option.opts, key=len)):
                wrong[text] = line
    assert wrong == {}


VARIABLES = (
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
    "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
    "TORCHELASTIC_HEALTH_CHECK_PORT",
    "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT",
    "TORCHELASTIC_ENABLE_FILE_TIMER",
    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
    "ELASTIC_STORE_TOKEN",
    "PYTHON_EXEC",
    "CUDA_VISIBLE_DEVICES",
)


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_hostile_value_of_another_variable_is_answered_with_it_and_a_remedy(variable: str) -> None:
    lines = {text: said(lambda text=text: asked(**{variable: text})) for text in HOSTILE}  # type: ignore[misc]
    assert {text: line for text, line in lines.items() if not is_answer(line, variable)} == {}


@pytest.mark.parametrize("option", [each for each in simulate.params if isinstance(each, click.Option)])
def test_a_hostile_value_for_the_simulator_is_answered_with_the_option_and_a_remedy(option: click.Option) -> None:
    longest = max(option.opts, key=len)

    def ask(text: str) -> None:
        with simulate.make_context("simulate", [f"{longest}={text}"]) as context:
            simulate_options.asked_for(simulate_options.SimulateOptions(**context.params), context)

    lines = {text: said(lambda text=text: ask(text)) for text in HOSTILE}  # type: ignore[misc]
    assert {text: line for text, line in lines.items() if not is_answer(line, longest)} == {}


def test_a_hostile_endpoint_of_a_store_is_answered_with_the_option_and_a_remedy() -> None:
    lines = {
        text: said(lambda text=text: store.make_context("store", [f"--endpoint={text}"]))  # type: ignore[misc]
        for text in HOSTILE
    }
    assert {text: line for text, line in lines.items() if not is_answer(line, "--endpoint")} == {}


@pytest.mark.parametrize("path", [*ELSEWHERE, "", "x" * 5_000, "\udcff", "a\nb", "/"])
def test_a_file_that_is_no_trace_is_answered_with_its_name_in_one_line(
    path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = run(["replay", path])
    out, err = capfd.readouterr()
    assert (code, out, err.count("\n")) == (USAGE, "", 1) and err.startswith("elastic: ")


# --- programs

ODD: tuple[Any, ...] = (object(), [], {}, b"x", ("a", 1), {"a": object()}, {"a": [1]}, lambda: None, True, 1 + 1j)


@pytest.mark.parametrize("field", attrs.fields(LaunchSettings), ids=lambda field: str(field.name))
def test_a_field_refuses_a_useless_value_in_one_line_with_its_name_and_a_remedy(field: Any) -> None:
    wrong = {}
    for value in (*ODD, *(text for text in HOSTILE if not is_looked_up(field.name, text))):
        try:
            LaunchSettings(**{field.name: value})
            line = None if isinstance(value, str | bool) or (value, field.name) == ({}, "rdzv_conf") else "was taken"
        except ValueError as mistake:
            line = str(mistake)
        if line is not None and not is_answer(f"elastic: {line}", field.name):
            wrong[repr(value)] = line
    assert wrong == {}


# --- what shows only when something starts


def answer(*arguments: str | bytes, environment: Mapping[str, str] | None = None) -> str:
    """Run a real command; return the one line that it must print."""
    command = [sys.executable, "-m", "elastic", "launch", *arguments]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PET_")}
    ended = subprocess.run(
        command, env={**kept, **(environment or {})}, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    err = ended.stderr.decode(errors="backslashreplace")
    assert (ended.returncode, ended.stdout, err.count("\n")) == (USAGE, b"", 1), err
    return err.removeprefix("elastic: ").removesuffix("\n")


STARTED: list[tuple[tuple[str | bytes, ...], Mapping[str, str], str]] = [
    ((b"--role=\xff", "x"), {}, r"--role=\udcff: write 1 to 256 printable characters"),
    (("",), {}, "SCRIPT is empty; write the name of a script, a module (--module) or a program (--no-python)"),
    (("--trace=adir/nowhere/x", "x"), {}, "--trace=adir/nowhere/x: no file can be written there"),
    (("--report=" + "r" * 256, "x"), {}, f"--report={'r' * (WORD_MAX - 9)}…"),
    (("x",), {"TMPDIR": "/proc"}, "TMPDIR=/proc: no such file or directory; name a directory that can be written to"),
    (("x",), {"PYTHON_EXEC": "/dev/full"}, "PYTHON_EXEC=/dev/full: not a regular file; name a Python, or unset it"),
    (
        ("--event-log-handler=console", "x"),
        {"LOGLEVEL": "loud"},
        "LOGLEVEL=loud: write one of CRITICAL, FATAL, ERROR, WARN, WARNING, INFO, DEBUG, NOTSET",
    ),
    (
        ("x",),
        {"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": "/dev/full"},
        "TORCHELASTIC_TIMER_FILE=/dev/full: file exists; name a new file",
    ),
]


@pytest.mark.parametrize(("arguments", "environment", "start"), STARTED)
def test_a_mistake_that_shows_only_at_the_start_is_one_line_too(
    arguments: tuple[str | bytes, ...], environment: Mapping[str, str], start: str, tmp_path: Path
) -> None:
    (tmp_path / "adir").mkdir()
    assert answer(*arguments, environment=environment).startswith(start)
