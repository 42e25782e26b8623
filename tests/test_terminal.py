"""What is printed for people: no terminal obeys what a worker, another node or a file says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, fields
from narration import FAULT, Story, Terminal

from elastic.adapters.report.launch_report import Report, Result
from elastic.adapters.report.news import Recorded, StoreSilent, TraceLost
from elastic.adapters.terminal import printable, printed
from elastic.cli.render.ending import render_report
from elastic.core.group.state import Refused, Unstartable
from elastic.core.world import Ending, Fault, Verdict, Why

ROOT = Path(__file__).parents[1]
ROOMS = ("adapters", "cli", "core", "inprocess", "__main__.py")
NAMES = {"print", "click.echo", "click.secho", "warnings.warn"}
STREAMS = ("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__")
LOGGED = {"debug", "info", "warning", "warn", "error", "exception", "critical", "print_exc", "print_exception"}
HOSTILE = "\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\nelastic  all 2 workers succeeded\r\u2028\x00"
SHOWN = r"\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\nelastic  all 2 workers succeeded\r\u2028\x00"

WORKERS = "a worker's own output"
LIVE = "its live lines are those of cli/render/last_line.py"
OUTLETS = {
    "adapters/inprocess/rank/deadlines.py": WORKERS,
    "adapters/inprocess/rank/driver.py": WORKERS,
    "adapters/inprocess/rank/latecomers.py": WORKERS,
    "adapters/inprocess/rank/outcomes.py": WORKERS,
    "adapters/inprocess/beside/supervisor.py": WORKERS,
    "adapters/inprocess/rank/tracing.py": WORKERS,
    "adapters/inprocess/wrapper/assembly.py": WORKERS,
    "adapters/workers/startup/elastic_standby.py": WORKERS,
    "adapters/workers/startup/sitecustomize.py": WORKERS,
    "inprocess/compose.py": WORKERS,
    "inprocess/health_check.py": WORKERS,
    "inprocess/nested_restarter.py": WORKERS,
    "adapters/workers/start/forks.py": "flushes the streams of a worker that is being made",
    "adapters/workers/devices/count_by_torch.py": "a number, for the agent",
    "adapters/store/tcpstore/store_host.py": "the program's own words",
    "adapters/torch/telemetry.py": "printed; torch's events are JSON, which spells control characters out",
    "adapters/torch/torchrun_plugin.py": "printable",
    "cli/campaigns.py": LIVE,
    "cli/completion.py": "printable",
    "cli/launch.py": "printed",
    "cli/main.py": "the streams are opened and flushed",
    "cli/render/last_line.py": "printed",
    "cli/render/status.py": "printed",
    "cli/render/text.py": "printed",
    "cli/status.py": LIVE,
    "cli/torchrun.py": "printable",
    "cli/traces.py": LIVE,
    "cli/what_if.py": LIVE,
}
"""Files from which text can reach a terminal: the guard that they put it through, or why they need none."""


def outlets(tree: ast.Module) -> Iterator[int]:
    """Yield the lines from which text can reach a terminal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            if (text := ast.unparse(node)) in NAMES or text.startswith(STREAMS):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, owner, given = node.func.attr, ast.unparse(node.func.value), [ast.unparse(arg) for arg in node.args]
            logs = name in LOGGED and ("log" in owner.lower() or owner == "traceback")
            if logs or (name == "write" and ("out" in owner or "err" in owner or given[:1] in (["1"], ["2"]))):
                yield node.lineno


def test_each_place_that_writes_to_a_terminal_has_its_guard() -> None:
    files = [
        file for room in ROOMS for file in ((ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / room])
    ]
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    found = {name: lines for name, text in texts.items() if (lines := sorted(set(outlets(ast.parse(text)))))}
    assert found.keys() == OUTLETS.keys(), f"print by cli/render/text.py: {found}"
    for name, guard in OUTLETS.items():
        if (function := guard.partition(";")[0]) in ("printed", "printable"):
            assert f"{function}(" in texts[name], name


@pytest.mark.parametrize(
    "text",
    [
        "print(x)",
        "click.echo(x)",
        "sys.stderr.write(x)",
        "json.dump(x, sys.stdout)",
        "os.write(2, x)",
        "self._out.write(x)",
        "log.warning(x)",
        "logging.getLogger(x).error(x)",
        "say = print",
    ],
)
def test_an_outlet_is_found_however_it_is_written(text: str) -> None:
    assert list(outlets(ast.parse(text)))


def test_controls_line_breaks_and_changes_of_direction_are_spelled_out() -> None:
    assert printed(HOSTILE, "ü → 漢字 🙂 │") == f"{SHOWN}\nü → 漢字 🙂 │\n"
    assert printable(printable(HOSTILE)) == SHOWN


TEXTS = [field.name for field in fields(Fault) if field.type in ("str", str)]
LINES = [field.name for field in fields(Fault) if "tuple" in str(field.type)]


def hostile(name: str) -> Fault:
    text: Any = (HOSTILE,) if name in LINES else HOSTILE
    return evolve(FAULT, **{name: text})


def obeyed(text: str) -> list[str]:
    """Return the lines that are not the launcher's own, and what a terminal would obey."""
    forged = [line for line in text.splitlines() if line.startswith("elastic  all 2 workers")]
    return [*forged, *(each for each in text if each != "\n" and not each.isprintable())]


@pytest.mark.parametrize("name", [*TEXTS, *LINES])
def test_no_text_of_a_failure_record_is_obeyed(name: str) -> None:
    story = Story()
    fault = hostile(name)
    story.status.saw(Recorded(fault))
    outcome = Verdict(Ending.FAILED, fault.round, fault.node, Why.FAILED)
    settings = story.status._settings
    for faults in ((fault,), (evolve(FAULT, rank=1), fault), (evolve(fault, round=0), evolve(FAULT, round=1))):
        report = Report(settings, Result(FAULT.node, outcome, faults, None), 1, 1.0)
        story.status.end(render_report(report, ()), False)
    assert obeyed(story.out.getvalue()) == []


def test_no_text_of_the_store_is_obeyed() -> None:
    story = Story()
    story.status.saw(StoreSilent(HOSTILE, story.at(0.0)))
    story.status.passed(story.at(10.0))
    story.status.saw(TraceLost(HOSTILE))
    story.status.warn(HOSTILE)
    story.happens(Unstartable(HOSTILE, story.at(11.0), True))
    for why in Why:
        refused = Refused(why, HOSTILE, 0.0)
        report = Report(story.status._settings, Result(FAULT.node, refused, (), None), 3, 1.0)
        story.status.end(render_report(report, ()), False)
    assert story.out.getvalue().count(SHOWN) >= len(Why)
    assert obeyed(story.out.getvalue()) == []


def test_no_text_of_a_wait_is_obeyed() -> None:
    """The live last line moves the cursor by itself; what is hostile in it is spelled out."""
    for mode in ("live", "plain"):
        story = Story(Terminal(), mode)
        story.status.saw(StoreSilent(HOSTILE, story.at(0.0)))
        story.status.passed(story.at(10.0))
        shown = story.out.getvalue()
        assert r"\x1b]0;title\x07\x9b31m\u202e" in shown
        assert not any(each in shown for each in ("\x1b]", "\x07", "\x9b", "\u202e", "\u2028", "\x00"))
