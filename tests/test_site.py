"""The site's API reference has each public name, and the script of a page does what the page says."""

from __future__ import annotations

import os
import re
import signal
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
from launches import launcher
from processes import children_of, comes_true, command_of

import elastic

API = Path(__file__).parents[1] / "docs/api"


def referenced(page: str) -> set[object]:
    """What a page of the reference shows."""
    names = re.findall(r"^::: (\S+)\.(\w+)$", (API / page).read_text(), re.MULTILINE)
    return {getattr(import_module(module), name) for module, name in names}


@pytest.mark.parametrize(("page", "package"), [("elastic.md", "elastic"), ("inprocess.md", "elastic.inprocess")])
def test_the_reference_has_each_public_name_and_no_other(page: str, package: str) -> None:
    module = import_module(package)
    public = (getattr(module, name) for name in module.__all__)
    assert referenced(page) == {each for each in public if not isinstance(each, ModuleType)}


def test_the_reference_of_the_core_has_each_of_its_modules() -> None:
    shown = {module.__name__.rpartition(".")[2] for module in referenced("core.md") if isinstance(module, ModuleType)}
    assert shown == set(elastic.core.__all__)


def test_the_script_of_the_page_on_fault_tolerance_resumes_after_a_kill(tmp_path: Path) -> None:
    page = (API.parent / "tolerance.md").read_text()
    (script,) = re.findall(r"^    # resume\.py\n(?:    .*\n|\n)+", page, re.MULTILINE)
    program, saved = tmp_path / "resume.py", tmp_path / "saved"
    program.write_text(dedent(script).replace("101", "1_000_001"))  # it runs until it is ended
    saved.mkdir()
    with launcher(tmp_path) as launch:
        job = launch("--nproc-per-node=2", "--max-restarts=1", "--tee=3", program, saved)
        job.prints("rank 1 of 2 begins after step 0")
        assert comes_true(lambda: any(saved.glob("0-0-*0.pt")))
        os.kill(next(pid for pid in children_of(job.pid) if "resume.py" in command_of(pid)), signal.SIGKILL)
        assert comes_true(lambda: bool(re.search(r"begins after step [1-9]\d*0\n", job.prints(""))))
        assert comes_true(lambda: any(saved.glob("1-1-*0.pt")))
        job.signal(signal.SIGTERM)
        assert job.ends().code == 143
