"""The man pages: made from the help, whole, and without a word that `man` takes for a request."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elastic.cli.launch import launch
from elastic.cli.root import LATER

TOOL = Path(__file__).parents[1] / "tools" / "man_pages.py"


def shown(page: Path) -> str:
    """Return what `man` shows of a page; it has nothing to complain of."""
    if not shutil.which("man") or not shutil.which("groff"):
        pytest.skip("there is no man, or no groff")
    environment = {**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    command = ["man", "--warnings=w", "-l", str(page)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_each_command_has_a_page_with_all_of_its_options(tmp_path: Path) -> None:
    subprocess.run([sys.executable, TOOL, tmp_path], check=True)
    assert {page.name for page in tmp_path.iterdir()} == {
        "elastic.1",
        *(f"elastic-{name}.1" for name in ("launch", *LATER)),
    }
    whole = shown(tmp_path / "elastic.1")
    assert all(f" {name}\n" in whole or f" {name} " in whole for name in ("launch", *LATER))
    page = shown(tmp_path / "elastic-launch.1")
    for param in launch.params:
        names = [name for name in param.opts if name.startswith("--") and "_" not in name]
        assert all(re.search(rf"(^|[ ,]){name}\b", page, re.MULTILINE) for name in names), names
    assert "does: 0 the job succeeded → nothing 1 the job failed" in " ".join(page.split())
    assert "${local_rank} in an argument" in page and "--nproc-per-node=4 train.py" in page
