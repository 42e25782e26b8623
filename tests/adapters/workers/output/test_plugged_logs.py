"""A plugin of torchrun's that says where logs go: found, called and believed as torchrun does it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from queue import SimpleQueue

import pytest
from processes import comes_true
from torch.distributed.elastic import multiprocessing
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsDest, LogsSpecs

from elastic.adapters.disk import Disk
from elastic.adapters.launch_settings import Logs, Std, Streams
from elastic.adapters.workers.output.logs import Place
from elastic.adapters.workers.output.plugged_logs import GROUP, PluggedLogs, make_plugin
from elastic.adapters.workers.worker_port import CannotStart, Duplicate, Remark, Sink

TORCH = "torch.distributed.elastic.multiprocessing:DefaultLogsSpecs"


def installed(*plugins: tuple[str, str]) -> Callable[..., EntryPoints]:
    """As importlib.metadata tells it, of (name, value)."""
    there = EntryPoints(EntryPoint(name, value, GROUP) for name, value in plugins)
    return there.select


def test_torch_s_own_class_is_called_with_what_the_options_say(tmp_path: Path) -> None:
    asked = Logs(str(tmp_path), Streams(Std.ERR), Streams(ranks={0: Std.ALL, 1: Std.OUT}), frozenset({0}))
    plugin = make_plugin("theirs", asked, installed(("theirs", TORCH)))
    assert isinstance(plugin, DefaultLogsSpecs)
    tee = {0: multiprocessing.Std.ALL, 1: multiprocessing.Std.OUT}
    assert plugin == DefaultLogsSpecs(str(tmp_path), multiprocessing.Std.ERR, tee, {0})


def test_the_name_that_torchrun_gives_its_own_is_ours() -> None:
    assert make_plugin("default", Logs(), installed(("default", TORCH))) is None


def test_what_the_plugin_names_is_where_workers_write(tmp_path: Path, disk: Disk) -> None:
    asked = Logs(str(tmp_path), Streams(Std.ERR), Streams(ranks={0: Std.OUT}), frozenset({0}), None, ("a",), ("b",))
    plugin = make_plugin("theirs", asked, installed(("theirs", TORCH)))
    assert plugin
    environments = {rank: {"TORCHELASTIC_RUN_ID": "job", "TORCHELASTIC_ERROR_FILE": "/old"} for rank in (0, 1)}
    places = PluggedLogs(plugin, asked, disk).places(0, environments)
    (run,) = tmp_path.iterdir()
    attempt = run / "attempt_0"
    assert places[0].stdout == Sink(
        attempt / "0" / "stdout.log", True, Duplicate(attempt / "filtered_stdout.log", (b"a",))
    )
    assert places[0].stderr == Sink(attempt / "0" / "stderr.log", console=False)
    assert places[1].stdout == Sink(Path("/dev/null"), console=False)
    for rank in (0, 1):
        assert places[rank].error_file == attempt / str(rank) / "error.json"
        assert environments[rank]["TORCHELASTIC_ERROR_FILE"] == str(places[rank].error_file)


class Reticent(LogsSpecs):
    root_log_dir = ""

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        envs[0]["MINE"] = "x"
        return LogsDest()


def test_a_plugin_that_names_no_file_leaves_the_console_and_may_add_to_the_environment(disk: Disk) -> None:
    environments = {0: {"TORCHELASTIC_ERROR_FILE": "/of/another/launcher"}}
    places = PluggedLogs(Reticent(), Logs(), disk).places(0, environments)
    assert (places[0].stdout, places[0].stderr, places[0].error_file) == (Sink(), Sink(), None)
    assert environments == {0: {"MINE": "x", "TORCHELASTIC_ERROR_FILE": ""}}


class Broken(Reticent):
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        raise KeyError("nothing\nhere")


def test_a_plugin_that_fails_later_fails_the_job_with_its_reason(disk: Disk) -> None:
    with pytest.raises(CannotStart, match=r"^the plugin of --logs-specs says nothing: KeyError: 'nothing\\nhere'$"):
        PluggedLogs(Broken(), Logs(), disk).places(0, {0: {}})


class Slow(Reticent):
    """It answers when it may, and has then done all that it does."""

    def __init__(self) -> None:
        self.may_answer, self.envs = threading.Event(), dict[int, dict[str, str]]()

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        self.may_answer.wait()
        super().reify(envs)
        self.envs = envs
        return LogsDest()


def test_a_plugin_that_answers_too_late_changes_no_environment_of_a_worker(disk: Disk) -> None:
    told, plugin, environments = SimpleQueue[Remark](), Slow(), {0: {"RANK": "0"}}
    logs = PluggedLogs(plugin, Logs(), disk, told.put, patience_s=0.01)
    assert logs.places(3, environments) == {0: Place(Sink(), Sink(), None)}
    assert "the output of round 3 is on the console only" in told.get_nowait().text
    plugin.may_answer.set()
    assert comes_true(lambda: plugin.envs == {0: {"RANK": "0", "MINE": "x"}})
    assert environments == {0: {"RANK": "0"}}
    logs.close()


class Quitting(Reticent):
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        sys.exit("no place")


def test_a_plugin_that_exits_fails_the_job_with_its_reason(disk: Disk) -> None:
    with pytest.raises(CannotStart, match="SystemExit: no place"):
        PluggedLogs(Quitting(), Logs(), disk).places(0, {0: {}})


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"^no such plugin .*torchrun\.logs_specs\); write one of: default, mine, yours$"
    ):
        make_plugin("zeus", Logs(), installed(("yours", "a:b"), ("mine", "c:d")))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_module:Logs", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("collections:NoSuchClass", "AttributeError: module 'collections' has no attribute 'NoSuchClass'"),
        ("builtins:bytes", "TypeError: "),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named_with_the_reason(value: str, why: str) -> None:
    with pytest.raises(ValueError, match=rf"^{value}: {why}.*; fix the plugin, or leave it out$"):
        make_plugin("x", Logs(), installed(("x", value)))
