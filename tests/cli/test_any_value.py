"""Any value gives settings or one line, never a traceback."""

from __future__ import annotations

from typing import Any

import click
import commandlines
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elastic.cli.launch import launch
from elastic.cli.mistakes import one_line
from elastic.cli.option import Option

OPTIONS = [param for param in launch.params if isinstance(param, Option) and not param.is_flag]
PIECES = st.sampled_from(
    [*"0123456789:,=;./[]%-+ \t\n\\\"'$²٣é\udcff", "SIGTERM", "0:3", "1,2", "http://", "1e9", "inf"]
)
TEXTS = st.text(max_size=12) | st.lists(PIECES, max_size=8).map("".join)


def outcome(*arguments: str, all_of_it: bool = True) -> Any:
    """Return the settings, or the line of the mistake.

    Without `all_of_it`, or where the name of a host would be looked up, the options are read and no settings are made.
    """
    try:
        options = commandlines.options(*arguments)
        if not all_of_it or options.rdzv_endpoint or options.master_addr:
            return options
        return commandlines.settings({}, *arguments, "x")
    except click.ClickException as mistake:
        return one_line(mistake)


def is_answer(found: Any) -> bool:
    return not isinstance(found, str) or (found.startswith("elastic: ") and "\n" not in found)


@pytest.mark.parametrize("option", OPTIONS, ids=[str(option.name) for option in OPTIONS])
@given(text=TEXTS)
@example(text="")
@settings(max_examples=40, deadline=None)
def test_any_value_of_an_option_gives_settings_or_one_line(option: Option, text: str) -> None:
    if option.name == "nproc_per_node" and text[:1].isalpha():
        return  # a kind of device, of which torch is asked
    assert is_answer(outcome(f"{max(option.opts, key=len)}={text}"))


NAMES = [name for option in OPTIONS if option.name != "nproc_per_node" for name in option.opts]
"""--nproc-per-node=-rt would ask torch for such devices, which takes a second."""


@given(st.lists(st.sampled_from([*NAMES, "--", "-", "-m", "-rt", "--n", "1"])))
@settings(max_examples=200, deadline=None)
def test_any_options_in_any_order_give_options_or_one_line(words: list[str]) -> None:
    assert is_answer(outcome(*words, all_of_it=False))
