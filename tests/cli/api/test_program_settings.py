"""`elastic.LaunchSettings` has the command's options: the same names, defaults and checks."""

from __future__ import annotations

from typing import Any

import commandlines
import pytest
from attrs import asdict, fields

import elastic
from elastic.cli.api.program_settings import COMMAND_ALONE, PROGRAM_ALONE, options_of
from elastic.cli.launch_options import LaunchOptions
from elastic.core.rendezvous import Limits

FIELDS = {field.name for field in fields(elastic.LaunchSettings)}


def test_every_option_is_a_field_and_nothing_else_is() -> None:
    assert {option.name for option in fields(LaunchOptions)} - set(COMMAND_ALONE) == FIELDS - set(PROGRAM_ALONE)


def test_a_field_that_is_left_out_is_the_option_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asdict(options_of(elastic.LaunchSettings())) == asdict(commandlines.options())


def test_a_program_s_settings_read_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_MAX_RESTARTS", "7")
    assert options_of(elastic.LaunchSettings()).max_restarts == 0


def test_values_may_be_python_s_own() -> None:
    made = options_of(
        elastic.LaunchSettings(nnodes="1:3", tee=3, grace=1.5, rdzv_conf={"join_timeout": 60, "k": "a,b"})
    )
    assert (made.nnodes, made.grace) == (Limits(1, 3), 1.5)
    assert made.rdzv_conf == {"join_timeout": "60", "k": "a,b"}
    assert made.tee.of(0).value == 3


class Specs:
    """An object like torch's LogsSpecs."""

    def reify(self, envs: object) -> None:
        """Name no file."""


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"nproc_per_node": 0}, "nproc_per_node=0: write a number of workers, 1 or more, or one of auto, cpu, gpu, xpu"),
    ({"nnodes": "4:2"}, "nnodes=4:2: the minimum (4) is above the maximum (2); write nnodes=2:4"),
    ({"start_method": "thread"}, "start_method=thread: write spawn, fork or forkserver"),
    ({"standby": 0}, "standby=0: write a number of standbys, 1 or more, or standby alone for one for each worker"),
    (
        {"preload": "a-b"},
        "preload=a-b: 'a-b' is no module's name; write names with commas between, like torch,torch.distributed",
    ),
    ({"log_line_prefix_template": 3}, "log_line_prefix_template=3: write text"),
    ({"logs_specs": 3}, "logs_specs=3: write an object like torch's DefaultLogsSpecs(log_dir='logs')"),
    (
        {"logs_specs": Specs},
        f"logs_specs={Specs!r}: write an object like torch's DefaultLogsSpecs(log_dir='logs')",
    ),
    ({"logs_specs": Specs(), "tee": 3}, "tee: the object of logs_specs says this; give it to that object"),
    ({"on_store_loss": "panic"}, "on_store_loss=panic: write continue or stop"),
]


@pytest.mark.parametrize(("given", "line"), MISTAKES)
def test_a_mistake_names_the_field(given: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError) as raised:
        elastic.LaunchSettings(**given)
    assert str(raised.value) == line


def test_fields_that_do_not_fit_together_are_a_mistake_before_anything_starts() -> None:
    with pytest.raises(ValueError, match=r"^nnodes=2: several nodes must know where they meet; write rdzv_endpoint="):
        elastic.launch(elastic.LaunchSettings(nnodes=2))("train.py")
    with pytest.raises(ValueError, match=r"^no_python and module: "):
        elastic.launch(elastic.LaunchSettings(no_python=True, module=True))("train.py")


def test_forked_workers_have_no_standbys() -> None:
    with pytest.raises(
        ValueError, match=r"^standby: workers that are forked have done their imports; write start_method="
    ):
        elastic.launch(elastic.LaunchSettings(standby="each", start_method="fork"))(print)


def test_elastic_has_its_public_names_and_no_others() -> None:
    with pytest.raises(AttributeError, match="module 'elastic' has no attribute 'lunch'"):
        getattr(elastic, "lunch")  # noqa: B009
    assert set(elastic.__all__) == {name for name in elastic.__all__ if getattr(elastic, name)}
