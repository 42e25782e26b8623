"""A worker's word that it makes progress, and what its agent reads of it."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from elastic.adapters.workers.messages.progress import VARIABLE, Page, _mapped, page_path, read_page

PROGRAM = """
import elastic, json, sys
from elastic.adapters.workers.messages.progress import read_page
told = []
def tell(): told.append(read_page(sys.argv[1]))
tell(); elastic.progress(); elastic.progress(); tell()
with elastic.busy("checkpoint", 600):
    tell()
    with elastic.busy("x" * 200, float("inf")):
        elastic.progress(); tell()
    tell()
tell()
first, second = elastic.busy("a thread", 5), elastic.busy("another", 7)
first.__enter__(); second.__enter__(); first.__exit__(None, None, None); tell(); second.__exit__(None, None, None)
try:
    with elastic.busy("nothing", 0): pass
except ValueError as error:
    told.append(str(error))
print(json.dumps(told))
"""


def told(path: Path, given: str | None) -> list[object]:
    environment = {**os.environ, **({VARIABLE: given} if given else {})}
    run = subprocess.run([sys.executable, "-c", PROGRAM, path], env=environment, check=True, capture_output=True)
    found: list[object] = json.loads(run.stdout)
    return found


def test_a_worker_says_that_it_makes_progress_and_that_it_is_busy(tmp_path: Path) -> None:
    path = Path(page_path(str(tmp_path / "socket"), 3, 7))
    *pages, refused = told(path, str(path))
    assert pages == [
        [0, 0, 0.0, ""],
        [2, 0, 0.0, ""],
        [2, 3, 600.0, "checkpoint"],
        [3, 5, math.inf, "x" * 100],
        [3, 7, 600.0, "checkpoint"],
        [3, 0, 0.0, ""],
        [3, 13, 7.0, "another"],
    ]
    assert refused == "busy: a limit above 0 seconds, not 0"


@pytest.mark.parametrize("given", [None, "/nowhere/page"])
def test_without_a_launcher_or_a_place_for_the_page_nothing_happens(tmp_path: Path, given: str | None) -> None:
    *pages, _ = told(tmp_path / "page", given)
    assert pages == [[0, 0, 0.0, ""]] * 7 and not (tmp_path / "page").exists()


def test_a_page_has_its_place_on_the_disk_before_a_worker_writes_to_it(tmp_path: Path) -> None:
    """A hole in a file is filled at the first write, and that is SIGBUS where the disk is full."""
    _mapped(str(tmp_path / "page"))
    assert (tmp_path / "page").stat().st_blocks > 0


def test_whatever_a_worker_writes_into_its_page_is_read(tmp_path: Path) -> None:
    page = tmp_path / "page"
    assert read_page(None) == read_page(str(page)) == Page()
    page.write_bytes(b"\xff" * 20)
    assert read_page(str(page)) == Page()
    page.write_bytes(struct.pack("=QQd", 2**64 - 1, 1, math.nan) + b"\xff" * 200)
    assert read_page(str(page)) == Page(2**64 - 1)
    page.write_bytes(struct.pack("=QQd", 1, 1, 5.0) + b"\xff" * 200)
    assert read_page(str(page)) == Page(1, 1, 5.0, "\ufffd" * 100)
    link = tmp_path / "link"
    link.symlink_to(page)
    assert read_page(str(link)) == Page()
    os.mkfifo(tmp_path / "pipe")
    assert read_page(str(tmp_path / "pipe")) == Page()
