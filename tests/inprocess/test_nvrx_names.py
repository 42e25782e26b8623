"""What a name of nvidia-resiliency-ext is here: the lists, the code, docs/inprocess.md and `migrate` say the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nvrx_migrate as migrate
import pytest
from nvrx_names import ABSENT, DIFFERENT, RELEASE, SAME, TOP, Kind, there, told

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("nvrx_names.txt").read_text()
NAMES = [line for line in LIST.splitlines() if line and not line.startswith("#")]
ACCEPTED = {"wrap.Wrapper(rank_filter)", *(name for name, why in DIFFERENT.items() if why == "accepted and not used")}
"""Parameters that no signature shows."""


def test_the_list_is_that_of_the_release() -> None:
    assert LIST.startswith(f"# The names of nvidia-resiliency-ext {RELEASE}'s")
    assert len(NAMES) == len(set(NAMES)) > 400


def test_each_name_of_the_release_is_in_one_list_and_the_code_has_it_unless_it_is_absent() -> None:
    assert [name for name in NAMES if told(name)[0] is Kind.UNKNOWN] == []
    assert [name for name in NAMES if (told(name)[0] is Kind.ABSENT) == there(name) and name not in ACCEPTED] == []


def test_no_list_has_a_name_that_the_release_has_not_or_that_another_has() -> None:
    everything = [*SAME, *DIFFERENT, *ABSENT]
    assert len(everything) == len(set(everything))
    assert set(everything) | set(TOP) <= set(NAMES)


def test_each_reason_is_one_and_ends_no_sentence() -> None:
    reasons = [*DIFFERENT.values(), *ABSENT.values()]
    assert [each for each in reasons if not each or each.endswith(".") or "|" in each] == []


def tables() -> str:
    def rows(entries: dict[str, str]) -> str:
        by_reason = dict[str, list[str]]()
        for name, why in sorted(entries.items()):
            by_reason.setdefault(why, []).append(f"`{name}`")
        return "".join(f"| {', '.join(names)} | {why} |\n" for why, names in by_reason.items())

    modules = dict[str, list[str]]()
    for name in sorted(SAME):
        module, _, inner = name.partition(".")
        modules.setdefault(module, []).extend([f"`{inner}`"] if inner else [])
    same = "".join(f"| `{module}` | {', '.join(names)} |\n" for module, names in modules.items())
    return (
        f"| same in | names |\n| --- | --- |\n{same}\n"
        f"| different | how |\n| --- | --- |\n{rows(dict(DIFFERENT))}\n"
        f"| absent | why |\n| --- | --- |\n{rows(dict(ABSENT))}"
    )


def test_the_page_shows_every_name() -> None:
    assert tables() in (ROOT / "docs/inprocess.md").read_text(), f"paste this:\n{tables()}"


# --- migrate


PROGRAM = """
import nvidia_resiliency_ext.inprocess as inprocess, os
from nvidia_resiliency_ext import inprocess as ip
from nvidia_resiliency_ext.inprocess.monitor_process import MonitorProcess
from nvidia_resiliency_ext.inprocess import *
from .inprocess import abort

@inprocess.Wrapper(
    abort=ip.abort.AbortTorchDistributed(),
    rank_assignment=ip.rank_assignment.FillGaps(),
    nonsense=os.path.join("a", sep="b"),
)
def train(call: ip.CallWrapper): call.ping(), (lambda: inprocess)().abort, ip.Mode.ACTIVE, ip.State(0, 1).rank
"""


def test_a_program_s_names_are_told_by_line_and_its_imports_as_they_are_to_be() -> None:
    found = migrate.uses(PROGRAM, "train.py")
    told, kinds = migrate.lines("train.py", found)
    assert told == [
        "train.py:2: change the import: import elastic.inprocess as inprocess, os",
        "train.py:3: change the import: from elastic import inprocess as ip",
        "train.py:4: monitor_process.MonitorProcess: absent (another process does this, which imports no torch)",
        "train.py:5: change the import: from elastic.inprocess import *  # of its names the classes alone are looked for",
        f"train.py:8: Wrapper: different ({DIFFERENT['wrap.Wrapper']})",
        f"train.py:9: Wrapper(abort): different ({DIFFERENT['wrap.Wrapper(abort)']})",
        f"train.py:9: abort.AbortTorchDistributed: different ({DIFFERENT['abort.AbortTorchDistributed']})",
        f"train.py:10: rank_assignment.FillGaps: different ({DIFFERENT['rank_assignment.FillGaps']})",
        f"train.py:11: Wrapper(nonsense): unknown (no name of nvidia-resiliency-ext {RELEASE})",
    ]
    assert kinds == {Kind.SAME: 4, Kind.DIFFERENT: 4, Kind.ABSENT: 1, Kind.UNKNOWN: 1}


WHOLE = """
import nvidia_resiliency_ext, importlib
import nvidia_resiliency_ext as nvrx
from nvidia_resiliency_ext import inprocess as ip, fault_tolerance
from nvidia_resiliency_ext.inprocess.store import *
from nvidia_resiliency_ext.inprocess import *

nvrx.fault_tolerance, nvrx
nvrx.inprocess.State(0, 1), nvrx.inprocess.utils
nvidia_resiliency_ext.inprocess.State
importlib.import_module("nvidia_resiliency_ext.inprocess.state")
State, StoreMixin, Wrapper
"""


def test_names_are_found_by_the_whole_package_by_a_star_and_by_a_text() -> None:
    told, kinds = migrate.lines("train.py", migrate.uses(WHOLE, "train.py"))
    both = "from elastic import inprocess as ip; from nvidia_resiliency_ext import fault_tolerance"
    absent = ABSENT["store.StoreMixin"]
    assert told == [
        "train.py:2: change the import: import elastic.inprocess  # and what it is used by: nvidia_resiliency_ext.inprocess",
        "train.py:3: change the import: import elastic.inprocess  # and what it is used by: nvrx.inprocess",
        f"train.py:4: change the import: {both}",
        "train.py:5: change the import: from elastic.inprocess.store import *",
        "train.py:6: change the import: from elastic.inprocess import *  # of its names the classes alone are looked for",
        "train.py:9: utils: absent (a part of that wrapper's own works)",
        "train.py:11: change the import: 'elastic.inprocess.state'",
        f"train.py:12: store.StoreMixin: absent ({absent})",
        f"train.py:12: wrap.Wrapper: different ({DIFFERENT['wrap.Wrapper']})",
    ]
    assert kinds == {Kind.SAME: 2, Kind.DIFFERENT: 2, Kind.ABSENT: 2}


def test_a_whole_package_that_is_used_for_other_things_is_no_matter() -> None:
    assert migrate.uses("import nvidia_resiliency_ext as n, os\nn.fault_tolerance, n, os.path", "train.py") == []


def test_names_that_are_ours_alone_are_no_matter() -> None:
    found = migrate.uses("from elastic.inprocess import Wrapper, at_most\nWrapper(max_iterations=2)", "train.py")
    assert migrate.lines("train.py", found)[1] == {Kind.SAME: 2, Kind.DIFFERENT: 1}


def ran(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "nvrx_migrate.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_says_what_a_program_uses_and_runs_none_of_it(tmp_path: Path) -> None:
    clean, other = tmp_path / "clean.py", tmp_path / "other.py"
    clean.write_text("import nvidia_resiliency_ext.inprocess as i\ni.State(0, 1)\nraise SystemExit(9)\n")
    other.write_text("from nvidia_resiliency_ext.inprocess import utils\n")
    one, both = ran(clean), ran(clean, other)
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout == (
        f"{clean}:1: change the import: import elastic.inprocess as i\n"
        "names of nvidia-resiliency-ext: 1 same, 0 different, 0 absent\n"
    )
    assert both.returncode == 1
    assert f"{other}:1: utils: absent (a part of that wrapper's own works)\n" in both.stdout
    helped = ran("--help")
    assert helped.returncode == 0 and "runs nothing of the program" in helped.stdout


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfimport nvidia_resiliency_ext.inprocess as ip\nip.utils\n",
        b"# coding: latin-1\nimport nvidia_resiliency_ext.inprocess as ip\nip.utils, '\xe9'\n",
    ],
)
def test_a_program_is_read_in_its_own_encoding(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(content)
    assert migrate.run([str(file)]) == 1
    assert "utils: absent" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"def train(:\n", ":1: no Python 3."),
        (b"\xff\xfe", ": cannot be read: no text in UTF-8"),
        (b"a\x00b", ": no Python 3."),
        (b"(" * 5_000, ":1: no Python 3."),
        (None, ": cannot be read: no such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    file = tmp_path / "train\x1b[31m.py"
    if content is not None:
        file.write_bytes(content)
    assert migrate.run([str(file)]) == 2
    ended = ran(file)
    assert ended.returncode == 2
    assert f"{tmp_path}/train\\x1b[31m.py{complaint}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_a_file_the_command_says_what_it_takes() -> None:
    for arguments in ((), ("--nonsense",)):
        ended = ran(*arguments)
        assert (ended.returncode, ended.stderr) == (2, "usage: python tools/nvrx_migrate.py FILE...\n")
