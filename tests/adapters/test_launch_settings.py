"""A launch's settings are refused when they are made, with the value in the message."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from elastic.adapters.launch_settings import DrainSettings, Kind, LaunchSettings, Program
from elastic.core.world import LOCAL_WORLD_SIZE_MAX, NAME_MAX

PROGRAM = Program(Kind.SCRIPT, "train.py", (), "python")
BAD: list[tuple[dict[str, Any], str]] = [
    ({"local_world_size": 0}, "0: 1 to 65536 workers per node"),
    ({"local_world_size": LOCAL_WORLD_SIZE_MAX + 1}, "65537: 1 to 65536 workers per node"),
    ({"run_id": ""}, "'': 1 to 256 printable characters"),
    ({"run_id": "a\nb"}, r"'a\nb': 1 to 256 printable characters"),
    ({"role": "r" * (NAME_MAX + 1)}, f"'{'r' * 257}': 1 to 256 printable characters"),
    ({"address": "\x1b"}, r"'\x1b': 1 to 256 printable characters"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_a_value_that_cannot_work_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        LaunchSettings(PROGRAM, **given)
    assert str(refused.value) == message


def test_nodes_meet_in_memory_unless_it_is_said_where() -> None:
    assert LaunchSettings(PROGRAM).store == "in memory"


def test_workers_ignore_the_signal_that_drains_their_node_but_none_that_stops_them() -> None:
    assert DrainSettings(signal.SIGUSR1).ignored is signal.SIGUSR1
    for signum in (None, signal.SIGTERM, signal.SIGINT):
        assert DrainSettings(signum).ignored is None


def test_values_at_the_edge_are_taken() -> None:
    made = LaunchSettings(PROGRAM, local_world_size=LOCAL_WORLD_SIZE_MAX, run_id="r" * NAME_MAX, role="é / ü")
    assert isinstance(made.program, Program)
    assert made.program.command == ("python", "-u", "train.py")


def test_a_script_that_can_be_read_once_is_left_to_the_worker(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print()")
    assert Program(Kind.SCRIPT, str(script)).identity == ("train.py", "3422c0d9")
    reader, writer = os.pipe()
    os.write(writer, b"print()")
    os.close(writer)
    assert Program(Kind.SCRIPT, f"/proc/self/fd/{reader}").identity == (str(reader), "")
    assert os.read(reader, 100) == b"print()"
    os.close(reader)
