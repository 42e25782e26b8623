"""Handlers by name: built in, an installed package's, torch's; and what a bad one can do to a job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from elastic.adapters.clock import SystemClock
from elastic.adapters.launch_settings import Kind, LaunchSettings, Program
from elastic.adapters.report.news import Step
from elastic.adapters.torch import telemetry
from elastic.adapters.torch.metrics import Metric
from elastic.adapters.torch.telemetry import EventLog, MetricsLog, event_handler, metrics_handler, rendezvous_handler
from elastic.core.group import Group, Phase
from elastic.core.group.state import Departure, LeaveReason, Signalled
from elastic.core.world import Node

SETTINGS = LaunchSettings(Program(Kind.BINARY, "true"))
CLOCK = SystemClock()
JOINING = Group(Node("n", 1))
ENDED = Group(Node("n", 1), phase=Phase.ENDED, departure=Departure(LeaveReason.SIGNAL, None, signum=15))
END = Step(Signalled(15, 1.0), JOINING, ENDED, (), 1.0)

MODULE = """
import logging
class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []
    def emit(self, record):
        self.lines.append(record.getMessage())
class Values:
    def __init__(self):
        self.values = []
    def emit(self, metric):
        self.values.append(metric)
def broken():
    raise RuntimeError("no network")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings handlers."""
    info = tmp_path / "fancy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fancy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[torchrun.event_handlers]\nkept = fancy_handlers:Kept\nbroken = fancy_handlers:broken\n"
        "wrong = fancy_handlers:Values\nabsent = fancy_nowhere:Kept\n"
        "[torchrun.metrics_handlers]\nvalues = fancy_handlers:Values\nwrong = builtins:list\n"
    )
    (tmp_path / "fancy_handlers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def event_log(handler: logging.Handler) -> EventLog:
    return EventLog(handler, "test", SETTINGS, "c10d", CLOCK, lambda text: None)


def test_no_handler_is_none_and_the_console_is_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert [event_handler(name) for name in ("null", "dynamic_rendezvous")] == [None, None]
    assert metrics_handler("null") is None
    console, values = event_handler("console"), metrics_handler("console")
    assert console
    assert values
    console.handle(logging.makeLogRecord({"msg": "event"}))
    values.emit(Metric(1.5, "torchelastic", "name", 7))
    assert capsys.readouterr() == ("", "event\n[1.5][torchelastic]: name=7\n")


def test_an_installed_package_s_handlers_are_found_by_name(package: None) -> None:
    handler, values = event_handler("kept"), metrics_handler("values")
    assert handler
    assert values
    events, metrics = event_log(handler), MetricsLog(values, SETTINGS, CLOCK, lambda text: None)
    for log in (events, metrics):
        log.saw(END)
        log.close()
    (line,) = handler.lines  # type: ignore[attr-defined]
    assert '"name": "torchelastic.worker.status.FAILED", "source": "AGENT"' in line
    assert '"raw_error": "stopped by SIGTERM"' in line
    assert "SimpleElasticAgent.run.failure" in [metric.name for metric in values.values]  # type: ignore[attr-defined]


WRONG: list[tuple[Callable[[str], object], str, str]] = [
    (
        event_handler,
        "nobody",
        r"no handler of that name; write one of .*null.*kept.*\(entry points of torchrun.event_h",
    ),
    (event_handler, "broken", "it cannot be loaded: RuntimeError: no network"),
    (event_handler, "absent", "it cannot be loaded: ModuleNotFoundError: No module named 'fancy_nowhere'"),
    (event_handler, "wrong", "its entry point gives a Values; it must give a logging.Handler"),
    (metrics_handler, "nobody", "no handler of that name; write one of null, console, values, wrong, or install one"),
    (metrics_handler, "wrong", r"its entry point gives a list; it must give something with emit\(metric\)"),
]


@pytest.mark.parametrize(("look", "name", "reason"), WRONG)
def test_a_name_that_leads_nowhere_is_a_mistake(
    package: None, look: Callable[[str], object], name: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        look(name)


def test_a_handler_that_a_program_put_into_torch_s_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed.elastic.events import handlers

    mine = logging.NullHandler()
    monkeypatch.setitem(handlers._log_handlers, "mine", mine)
    assert event_handler("mine") is mine
    listening = logging.StreamHandler()
    monkeypatch.setitem(handlers._log_handlers, "dynamic_rendezvous", listening)
    assert event_handler("dynamic_rendezvous") is listening


def test_a_package_may_install_the_handler_of_the_rendezvous(package: None, tmp_path: Path) -> None:
    assert rendezvous_handler("null") is None
    assert event_handler("dynamic_rendezvous") is None
    folder = tmp_path / "rendezvous-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: rendezvous\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[torchrun.event_handlers]\ndynamic_rendezvous = fancy_handlers:Kept\n")
    assert event_handler("dynamic_rendezvous")
    assert rendezvous_handler("console") is None


def test_a_handler_that_hangs_holds_up_neither_the_agent_nor_its_end_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "END_TIMEOUT_S", 0.1)
    called, free = threading.Event(), threading.Event()

    class Hanging(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            called.set()
            free.wait()

    log = event_log(Hanging())
    log.saw(END)
    log.close()
    assert called.wait(60)
    free.set()


def test_a_handler_that_raises_is_told_of_once_and_given_all_the_same() -> None:
    class Raising:
        def __init__(self) -> None:
            self.given: list[Metric] = []

        def emit(self, metric: Metric) -> None:
            self.given.append(metric)
            raise OSError("no network")

    raising, warned = Raising(), list[str]()
    log = MetricsLog(raising, SETTINGS, CLOCK, warned.append)
    log.saw(END)
    log.close()
    assert len(raising.given) > 1
    assert warned == ["metrics are lost: their handler raised OSError: no network"]


def test_of_what_a_handler_that_hangs_is_given_a_bounded_part_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "QUEUE_MAX", 3)
    called, free = threading.Event(), threading.Event()

    class Hanging:
        def __init__(self) -> None:
            self.given: list[str] = []

        def emit(self, item: str) -> None:
            called.set()
            free.wait()
            self.given.append(item)

    hanging, warned = Hanging(), list[str]()
    outlet = telemetry._Outlet[str](hanging.emit, "events", warned.append)
    try:
        outlet.put("a")
        assert called.wait(60)
        outlet.put("bcdef")
    finally:
        free.set()
        outlet.close()
    assert hanging.given == ["a", "b", "c", "d"]
    assert warned == ["events are lost: their handler does not keep up, 3 wait"]


def test_the_logger_is_torch_s_and_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("torchelastic-events-test")
    handler = logging.NullHandler()
    log = event_log(handler)
    assert (logger.level, logger.propagate, handler in logger.handlers) == (logging.INFO, False, True)
    log.close()
    assert handler not in logger.handlers
    monkeypatch.setenv("LOGLEVEL", "LOUD")
    with pytest.raises(ValueError, match="LOGLEVEL=LOUD: write one of CRITICAL, "):
        event_log(logging.NullHandler())
