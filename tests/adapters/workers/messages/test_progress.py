"""What a worker says of its work, and what its agent reads of it."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from elastic.adapters.workers.messages import progress
from elastic.adapters.workers.messages.pages import Page, page_path, put_before, read_page, take_page
from elastic.adapters.workers.messages.progress import VARIABLE, _mapped
from elastic.core import work
from elastic.core.work import Mark, Said

PROGRAM = """
import elastic, json, sys
from elastic.adapters.workers.messages.pages import read_page
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


def told(page: Path | str | None, program: str, *arguments: Path) -> str:
    """Run this program with that page, to its end, and return what it prints."""
    environment = {**os.environ, **({VARIABLE: str(page)} if page else {})}
    return subprocess.check_output([sys.executable, "-c", program, *arguments], env=environment, text=True)


def test_a_worker_says_that_it_makes_progress_and_that_it_is_busy(tmp_path: Path) -> None:
    path = Path(page_path(str(tmp_path / "socket"), 3, 7))
    *pages, refused = json.loads(told(path, PROGRAM, path))
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
    *pages, _ = json.loads(told(given, PROGRAM, tmp_path / "page"))
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
    assert read_page(str(page)) == Page(1, 1, 5.0, "other")
    link = tmp_path / "link"
    link.symlink_to(page)
    assert read_page(str(link)) == Page()
    os.mkfifo(tmp_path / "pipe")
    assert read_page(str(tmp_path / "pipe")) == Page()


SAYS = """
import elastic, json, os, sys, time
from time import monotonic
times = [monotonic()]
def wait():
    time.sleep(0.001); times.append(monotonic()); time.sleep(0.001)
with elastic.busy("load", 5): wait()
elastic.progress(step=4); wait()
elastic.progress(step=5); wait()
with elastic.busy("checkpoint", 5):
    wait()
    with elastic.busy("upload", 5): wait()
    elastic.saved(5); elastic.saved(3)
    elastic.progress(step=7)
elastic.progress(step=6)
for bad in (-1, True, 2**63, 1.0, "8", None):
    for call in (elastic.progress, elastic.saved):
        if bad is not None or call is elastic.saved:
            try: call(bad)
            except (TypeError, ValueError) as error: times.append(str(error))
for number in range(9):
    with elastic.busy(f"n{number}", 5): pass
spans = [elastic.busy("evaluation", 5)]
spans[0].__enter__(); wait()
print(json.dumps(times), flush=True)
os.kill(os.getpid(), 9)
"""


def said(path: Path) -> tuple[Said, list[Any]]:
    """What a killed worker had said by then."""
    run = subprocess.run(
        [sys.executable, "-c", SAYS], env={**os.environ, VARIABLE: str(path)}, check=False, capture_output=True
    )
    assert run.returncode == -9, run.stderr.decode()
    found: list[Any] = json.loads(run.stdout)
    return take_page(str(path)), found


def test_what_a_worker_had_said_of_its_work_is_read_when_it_is_dead(tmp_path: Path) -> None:
    put_before(str(tmp_path / "page"), 5)
    found, times = said(tmp_path / "page")
    _, loaded, four, five, _, uploads, *refusals, evaluates = times
    assert not (tmp_path / "page").exists()
    assert (found.first_step, found.step, found.saved, found.saves) == (5, 8, 6, 1)
    assert uploads < found.saved_at < evaluates
    assert loaded < found.first.at < four and uploads < found.passed.at < found.last.at < evaluates
    spans = dict(found.spans)
    assert spans.keys() == {"load", "checkpoint", "upload", *(f"n{number}" for number in range(5)), "other"}
    assert 0.001 < spans["load"] == found.first.busy_s
    assert 0.002 < found.passed.busy_s - found.first.busy_s < found.passed.at - five
    assert abs(found.last.busy_s - spans["load"] - spans["checkpoint"] - spans["upload"]) < 1e-9
    assert spans["checkpoint"] + spans["upload"] < evaluates - five
    assert found.span and found.span[0] == "evaluation" and found.last.at < found.span[1] < evaluates
    assert refusals == [
        f"{call}: a step is an integer{what}"
        for what in (
            " from 0 to 2**63 - 1, not -1",
            ", not True (bool)",
            " from 0 to 2**63 - 1, not 9223372036854775808",
            ", not 1.0 (float)",
            ", not '8' (str)",
            ", not None (NoneType)",
        )
        for call in ("progress", "saved")
        if "None" not in what or call == "saved"
    ]


def test_where_nothing_was_reached_before_nothing_is_passed(tmp_path: Path) -> None:
    found, _ = said(tmp_path / "page")
    assert (found.passed, found.step) == (Mark(), 8)


def test_a_call_without_a_step_passes_nothing_and_one_that_is_refused_counts_nothing(tmp_path: Path) -> None:
    put_before(str(tmp_path / "page"), 0)
    program = "import elastic\nelastic.progress()\nelastic.progress(-1)"
    environment = {**os.environ, VARIABLE: str(tmp_path / "page")}
    run = subprocess.run([sys.executable, "-c", program], env=environment, check=False, capture_output=True)
    assert b"ValueError: progress: a step is an integer from 0 to 2**63 - 1, not -1" in run.stderr
    assert read_page(str(tmp_path / "page")).calls == 1
    found = take_page(str(tmp_path / "page"))
    assert found.first == found.last != Mark()
    assert (found.first_step, found.step, found.passed) == (0, 0, Mark())


def test_a_save_counts_when_a_higher_step_is_safe(tmp_path: Path) -> None:
    program = """
import elastic
from time import monotonic
for step in (2, 4, 4, 3): elastic.saved(step)
before = monotonic()
elastic.saved(6)
after = monotonic()
elastic.saved(5)
print(before, after)
"""
    before, after = map(float, told(tmp_path / "page", program).split())
    found = take_page(str(tmp_path / "page"))
    assert (found.saved, found.saves) == (7, 3) and before <= found.saved_at <= after


def test_every_integer_is_a_step(tmp_path: Path) -> None:
    program = """
import elastic, enum, numpy
class Steps(enum.IntEnum): FIRST = 3
elastic.progress(Steps.FIRST); elastic.progress(numpy.int64(5)); elastic.saved(numpy.uint8(4))
for call in (elastic.progress, elastic.saved):
    try: call(numpy.int32(-7))
    except ValueError: elastic.progress(numpy.int32(6))
"""
    told(tmp_path / "page", program)
    found = take_page(str(tmp_path / "page"))
    assert (found.first_step, found.step, found.saved) == (4, 7, 5)


def test_a_span_that_is_refused_is_none(tmp_path: Path) -> None:
    program = """
import elastic, sys
from datetime import timedelta
from fractions import Fraction
for name, limit in ((5, 60), ("load", "60"), ("load", None), ("load", timedelta(5)), ("load", float("nan"))):
    try:
        with elastic.busy(name, limit): sys.exit("it was begun")
    except (TypeError, ValueError) as error: print(type(error).__name__, error)
with elastic.busy("load", Fraction(1, 2)): elastic.progress()
"""
    assert told(tmp_path / "page", program).splitlines() == [
        "TypeError busy: a name is a str, not 5 (int)",
        "TypeError busy: a limit is a number of seconds, not '60' (str)",
        "TypeError busy: a limit is a number of seconds, not None (NoneType)",
        "TypeError busy: a limit is a number of seconds, not datetime.timedelta(days=5) (timedelta)",
        "ValueError busy: a limit above 0 seconds, not nan",
    ]
    assert read_page(str(tmp_path / "page")) == Page(1)


def test_a_long_name_ends_with_a_whole_character(tmp_path: Path) -> None:
    told(
        tmp_path / "page",
        'import elastic\nspan = elastic.busy("e" + "\u00e9" * 60, 5)\nspan.__enter__()\nimport os; os._exit(0)',
    )
    found = take_page(str(tmp_path / "page"))
    assert found.span and found.span[0] == "e" + "\u00e9" * 49


BESIDE = """
import elastic, json, threading, time
from time import monotonic
begun, may_end, times = threading.Event(), threading.Event(), []
def saves():
    with elastic.busy("checkpoint", 60):
        begun.set(); may_end.wait()
elastic.progress(1)
thread = threading.Thread(target=saves)
thread.start(); begun.wait()
for step in (2, 3):
    time.sleep(0.02); times.append(monotonic()); elastic.progress(step)
time.sleep(0.02); may_end.set(); thread.join(); times.append(monotonic())
print(json.dumps(times))
"""


def test_a_span_beside_the_training_is_busy_time_only_after_the_last_progress(tmp_path: Path) -> None:
    _, progressed, ended = json.loads(told(tmp_path / "page", BESIDE))
    found = take_page(str(tmp_path / "page"))
    assert 0.02 <= dict(found.spans)["checkpoint"] <= ended - progressed
    assert (found.first.busy_s, found.last.busy_s) == (0, 0)


OWNS = """
import elastic, os, subprocess, sys
def child():
    assert not os.fork() or not os.wait()[1], "the child failed"
    if os.getpid() != me:
        other(); os._exit(0)
def other():
    with elastic.busy("evaluation", 60): elastic.progress(1_000_000)
    elastic.saved(999_999)
me = os.getpid()
if sys.argv[1:] == ["child"]: sys.exit(other())
elastic.progress(1)
with elastic.busy("checkpoint", 60): child()
elastic.saved(1)
subprocess.run([sys.executable, sys.argv[0], "child"], check=True)
"""


def test_the_first_process_that_calls_owns_the_page_and_of_others_calls_of_progress_count(tmp_path: Path) -> None:
    program, page = tmp_path / "program.py", str(tmp_path / "page")
    program.write_text(OWNS)
    subprocess.run([sys.executable, program], env={**os.environ, VARIABLE: page}, check=True)
    assert read_page(page).calls == 3
    found = take_page(page)
    assert (found.first_step, found.step, found.saved, found.span) == (2, 2, 2, None)
    assert found.first == found.last
    assert [name for name, seconds in found.spans if seconds] == ["checkpoint"]


def test_a_forked_child_with_another_page_owns_that(tmp_path: Path) -> None:
    program = f"""
import elastic, os
with elastic.busy("load", 5): elastic.progress(7)
elastic.saved(7)
if not os.fork():
    os.environ["{VARIABLE}"] += ".child"
    with elastic.busy("evaluation", 5): elastic.progress(3)
    elastic.saved(2)
    os._exit(0)
assert not os.wait()[1]
"""
    told(tmp_path / "page", program)
    own, child = (take_page(str(tmp_path / name)) for name in ("page", "page.child"))
    assert (own.first_step, own.step, own.saved, own.saves) == (8, 8, 8, 1)
    assert (child.first_step, child.step, child.saved, child.saves) == (4, 4, 3, 1)
    assert [[name for name, seconds in each.spans if seconds] for each in (own, child)] == [["load"], ["evaluation"]]


def test_the_agent_s_bounds_are_those_of_the_worker_which_imports_nothing_of_the_core() -> None:
    ours, theirs = ((each.STEP_MAX, each.NAMES_MAX, each.OTHER) for each in (work, progress))
    assert ours == theirs
    shown = "import sys, elastic; elastic.progress(); print('attrs' in sys.modules or 'elastic.core' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", shown], text=True) == "False\n"


def test_a_page_that_is_too_short_or_a_link_says_nothing_and_is_gone(tmp_path: Path) -> None:
    page, link = tmp_path / "page", tmp_path / "link"
    assert take_page(str(page)) == Said()
    page.write_bytes(b"\xff" * (progress.BYTES - 1))
    assert take_page(str(page)) == Said()
    page.write_bytes(b"\xff" * progress.BYTES)
    link.symlink_to(page)
    assert take_page(str(link)) == Said()
    assert page.exists() and not link.is_symlink()
    garbage = take_page(str(page))
    assert (garbage.saved, {name for name, _ in garbage.spans}) == (2**64 - 1, {"other"})
    put_before(str(page), 3)
    put_before(str(page), 4)  # its place is taken: nobody writes to it
    assert page.read_bytes()[8 * progress.BEFORE :] == (4).to_bytes(8, sys.byteorder)
    put_before(f"{tmp_path}/nowhere/page", 3)
