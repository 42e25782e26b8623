"""Nothing is accepted and ignored: each option, each key of --rdzv-conf and each setting behind them has a reader."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from attrs import fields, frozen

from elastic.adapters import launch_settings
from elastic.cli import etcd_place, rendezvous_settings
from elastic.cli.api.program_settings import COMMAND_ALONE, PROGRAM_ALONE
from elastic.cli.api.program_settings import LaunchSettings as ProgramSettings
from elastic.cli.drain import DrainOptions
from elastic.cli.goodput import goodput
from elastic.cli.launch_options import WITHOUT_EFFECT, LaunchOptions
from elastic.cli.replay import replay
from elastic.cli.running_job import JobOptions
from elastic.cli.simulate_options import SimulateOptions
from elastic.cli.stacks import StacksOptions
from elastic.cli.status import StatusOptions
from elastic.cli.store import store
from elastic.core import group, inprocess, rendezvous
from elastic.core.group.state import Alone

ROOT = Path(__file__).parents[2]
READ_IN: dict[type, tuple[str, ...]] = {
    LaunchOptions: ("cli",),
    SimulateOptions: ("cli",),
    JobOptions: ("cli",),
    DrainOptions: ("cli",),
    StacksOptions: ("cli",),
    StatusOptions: ("cli",),
    launch_settings.LaunchSettings: ("adapters",),
    launch_settings.Logs: ("adapters",),
    launch_settings.WatchdogSettings: ("adapters/agent",),
    rendezvous.Settings: ("core/rendezvous", "adapters"),
    rendezvous.Limits: ("core/rendezvous",),
    group.Settings: ("core/group",),
    Alone: ("core/group",),
    inprocess.Settings: ("core/inprocess", "adapters/inprocess"),
}
"""A class of options or settings -> the rooms in which its fields must be read. A copy into other settings is no reading."""
UNREAD: dict[tuple[type, str], str] = {
    (inprocess.Settings, "monitor_thread_interval"): "nothing polls; docs/protocol.md says so",
    (inprocess.Settings, "monitor_process_interval"): "nothing polls; docs/protocol.md says so",
}
"""Fields without a reader, each with the reason."""


@cache
def read_in(rooms: tuple[str, ...]) -> frozenset[str]:
    """Return the names of attributes that are read in these rooms."""
    return frozenset(
        node.attr
        for room in rooms
        for file in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


def unread(kind: type, rooms: tuple[str, ...]) -> set[str]:
    named = {each.name for each in fields(kind) if each.init}
    if kind is LaunchOptions:
        named -= WITHOUT_EFFECT.keys()
    return named - read_in(rooms) - {name for other, name in UNREAD if other is kind}


@pytest.mark.parametrize("kind", READ_IN, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_each_field_has_a_reader(kind: type) -> None:
    assert unread(kind, READ_IN[kind]) == set(), "read it, or name it with the reason why it makes no difference"


@frozen
class _Made:
    nobody_reads_this: int = 0


def test_a_field_without_a_reader_is_found() -> None:
    assert unread(_Made, ("cli", "adapters", "core")) == {"nobody_reads_this"}


def test_the_exceptions_are_needed() -> None:
    assert all(name not in read_in(READ_IN[kind]) for kind, name in UNREAD)
    assert WITHOUT_EFFECT.keys() <= {each.name for each in fields(LaunchOptions)}


def test_each_option_is_a_field_for_programs_or_for_command_lines_alone() -> None:
    programs = {each.name for each in fields(ProgramSettings)}
    assert programs - set(PROGRAM_ALONE) | set(COMMAND_ALONE) == {each.name for each in fields(LaunchOptions)}


def literals(source: str) -> list[str]:
    """Return the texts that a file reads something by, its declarations at the top left out."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    found = [node for function in functions for statement in function.body for node in ast.walk(statement)]
    return [node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_each_key_that_is_no_setting_has_a_reader() -> None:
    keys = {*rendezvous_settings.OURS, *rendezvous_settings.THEIRS, *etcd_place.KEYS}
    assert keys <= {text for file in (ROOT / "cli").glob("*.py") for text in literals(file.read_text())}


def test_no_key_is_both_honoured_and_said_to_make_no_difference() -> None:
    honoured = {each.name for each in fields(rendezvous.Settings) if each.init}
    assert not rendezvous_settings.WITHOUT_EFFECT.keys() & {
        *honoured,
        *rendezvous_settings.OURS,
        *rendezvous_settings.THEIRS,
    }
    assert set(rendezvous_settings.NO_KEYS) <= honoured


@pytest.mark.parametrize("command", [goodput, replay, store], ids=["goodput", "replay", "store"])
def test_each_option_of_the_smaller_commands_is_used(command: object) -> None:
    function = command.callback  # type: ignore[attr-defined]
    tree = ast.parse((ROOT / "cli" / f"{function.__name__}.py").read_text())
    (own,) = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function.__name__]
    used = {node.id for statement in own.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    assert {argument.arg for argument in own.args.args} <= used
