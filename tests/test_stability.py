"""docs/stability.md says what the code has: the numbers of formats, the names that stay, and the release."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

import elastic.core
from elastic.adapters.report import launch_report
from elastic.cli.render import goodput, job, stacks, what_if
from elastic.core.rendezvous import codec
from elastic.core.trace import lines

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "stability.md").read_text()
LAUNCH = (ROOT / "docs" / "launch.md").read_text()


def test_the_page_has_the_format_of_each_document_that_programs_read() -> None:
    (of_report,) = re.findall(r'"format": (\d+)', inspect.getsource(launch_report.as_json))
    told = dict(re.findall(r"`([\w. -]+)` \(`format` (\d+)\)", PAGE))
    formats = {
        "report.json": of_report,
        "elastic status --json": job.FORMAT,
        "elastic stacks --json": stacks.FORMAT,
        "elastic goodput --json": goodput.FORMAT,
        "elastic what-if --json": what_if.FORMAT,
    }
    assert told == {name: str(number) for name, number in formats.items()}


def test_the_page_has_the_format_of_registers_and_of_traces() -> None:
    assert re.findall(r"records in the store \((\d+)\), and of traces \((\d+)\)", PAGE) == [
        (str(codec.FORMAT), str(lines.FORMAT))
    ]


def test_the_page_names_no_module_of_the_core_as_stable_and_as_free_to_change() -> None:
    (free,) = re.findall(r"the laboratory:\n\s+`elastic\.core\.(\w+)`, `\.(\w+)`, `\.(\w+)` and `\.(\w+)`", PAGE)
    assert not set(free) & set(elastic.core.__all__)
    assert all((ROOT / "core" / name).is_dir() for name in free)


@pytest.mark.parametrize("name", elastic.core.__all__)
def test_each_stable_module_of_the_core_lists_its_names_and_has_them(name: str) -> None:
    module = importlib.import_module(f"elastic.core.{name}")
    assert module.__all__ and [each for each in module.__all__ if not hasattr(module, each)] == []


def test_launch_md_names_each_field_of_a_report() -> None:
    made = "".join(
        inspect.getsource(getattr(launch_report, name))
        for name in ("as_json", "_ending", "_fault_as_json", "_end_as_json", "unfit_as_json", "shares_data")
    )
    fields = set(re.findall(r'"(\w+)": ', made))
    section = LAUNCH.partition("\n## The report as data\n")[2].partition("\n## ")[0]
    assert len(fields) > 40
    assert fields - set(re.findall(r"`(\w+)`", section)) == set()


def test_the_version_is_the_last_release_s_or_with_changes_since_then_one_of_development_above_it() -> None:
    _, *sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    (coming, changes), (released, _) = (section.split("\n", 1) for section in sections[:2])
    version = Version(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    assert coming == "Unreleased"
    if changes.strip():
        assert version.is_devrelease and version > Version(released)
    else:
        assert version == Version(released)
    assert f"elastic {version}" not in lines.READERS.values(), "a version reads its own traces"
    assert f"\nversion: {released}\n" in (ROOT / "CITATION.cff").read_text(), "what can be cited is a release"
