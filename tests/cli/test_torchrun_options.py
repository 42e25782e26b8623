"""The options beside those of the installed torchrun: the same, or in the table of differences with the reason."""

from __future__ import annotations

import argparse
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from torch.distributed import argparse_util, run

from elastic.cli.launch import launch
from elastic.cli.main import run as run_elastic
from elastic.cli.option import Option

TABLE = tomllib.loads((Path(__file__).parents[1] / "torchrun_differences.toml").read_text())
SAME_AS_NONE: tuple[Any, ...] = (None, "", [], False)


def theirs() -> dict[str, argparse.Action]:
    """Return torchrun's options by their name with dashes."""
    parser = run.get_args_parser()
    options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
    return {action.dest.replace("_", "-"): action for action in options}


def ours() -> dict[str, Option]:
    return {(param.name or "").replace("_", "-"): param for param in launch.params if isinstance(param, Option)}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove PET_ variables: torch's parser reads them when it is made."""
    for name in [name for name in os.environ if name.startswith("PET_")]:
        monkeypatch.delenv(name)


def test_the_options_are_torchrun_s_and_those_in_the_table() -> None:
    both = set(theirs()) | set(ours())
    assert {name for name in both if name not in ours()} == set(TABLE.get("missing", {}))
    assert {name for name in both if name not in theirs()} == set(TABLE["ours"])


COMMON = sorted(set(theirs()) & set(ours()))


@pytest.mark.parametrize("name", COMMON)
def test_an_option_has_torchrun_s_spellings(name: str) -> None:
    assert set(ours()[name].opts) == set(theirs()[name].option_strings)


@pytest.mark.parametrize("name", COMMON)
def test_an_option_has_torchrun_s_variable(name: str) -> None:
    action = theirs()[name]
    reads_variable = isinstance(action, (argparse_util.env, argparse_util.check_env))
    assert ours()[name].envvar == (f"PET_{action.dest.upper()}" if reads_variable else None)


@pytest.mark.parametrize("name", COMMON)
def test_an_option_is_a_flag_where_torchrun_s_is(name: str) -> None:
    assert ours()[name].is_flag == (theirs()[name].nargs == 0)


def unset(option: Option) -> Any:
    """Return the default as click resolves it."""
    with click.Context(launch) as ctx:
        return option.get_default(ctx)


@pytest.mark.parametrize("name", COMMON)
def test_an_option_has_torchrun_s_default_or_one_of_the_table(name: str) -> None:
    their, our = theirs()[name].default, unset(ours()[name])
    row: Mapping[str, str] | None = TABLE["default"].get(name)
    if row is None:
        assert our == their or (our in SAME_AS_NONE and their in SAME_AS_NONE) or str(our) == str(their)
    else:
        assert (row["torchrun"], row.get("ours")) == (str(their), our) and row["reason"]
        assert our != their, "no difference"


@pytest.mark.parametrize("name", [name for name in COMMON if theirs()[name].choices])
def test_an_option_takes_torchrun_s_choices_and_no_others(name: str) -> None:
    choices = list(theirs()[name].choices or ())
    with click.Context(launch) as ctx:
        assert [ours()[name].type_cast_value(ctx, word) for word in choices] == choices
        with pytest.raises(click.UsageError) as mistake:
            ours()[name].type_cast_value(ctx, "zeus")
    assert all(word in mistake.value.message for word in choices)


def test_the_table_names_no_option_that_does_not_exist() -> None:
    assert set(TABLE["default"]) <= set(COMMON)


DOCS = Path(__file__).parents[2] / "docs"


def documented() -> tuple[set[str], set[str]]:
    """Return the options in the table of launch.md: torchrun's, and ours."""
    section = (DOCS / "launch.md").read_text().partition("## Every option")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("|") and "`--" in line]
    theirs_, ours_ = ({name for row in rows for name in re.findall(r"`--([a-z-]+)`", row[column])} for column in (2, 3))
    return theirs_, ours_


def test_the_documentation_has_every_option_in_its_column_and_no_other() -> None:
    assert documented() == (set(theirs()), set(ours()) - set(theirs()))


def test_the_help_explains_every_option(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_elastic(["launch", "--help"])
    text = capfd.readouterr().out
    explained = {name for name, _ in re.findall(r"^  (?:-\w, )?--([a-z-]+)(?:[ \[]\S+)?\s+(\S+)", text, re.MULTILINE)}
    assert explained - {"help"} == set(theirs()) | set(ours())
