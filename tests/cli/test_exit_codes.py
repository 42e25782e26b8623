"""Every outcome of an agent's part has an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from launches import ELASTIC

from elastic.cli import exit_codes, manual
from elastic.cli.exit_codes import EXITS, SIGNALLED, exit_code
from elastic.cli.main import run
from elastic.cli.root import LATER
from elastic.core.group import Outcome, Stopped
from elastic.core.group.state import Drained, Refused, Unawaited
from elastic.core.world import Ending, Node, Verdict, Why

ME = Node("n", 1)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("why", Why)
def test_success_is_0_no_progress_is_6_and_every_other_verdict_is_1(why: Why) -> None:
    codes = {ending: exit_code(Verdict(ending, 0, ME, why)) for ending in Ending}
    other = 6 if why is Why.FRUITLESS else 1
    assert codes == {Ending.SUCCEEDED: 0, Ending.FAILED: other, Ending.CANCELLED: other, Ending.LIMIT: other}


@pytest.mark.parametrize("why", Why)
def test_a_refused_agent_is_3_or_2_if_its_options_are_to_blame_or_4_if_its_check_is(why: Why) -> None:
    assert exit_code(Refused(why, "", 0.0), is_again=True) == {Why.LIMITS: 2, Why.UNFIT: 4, Why.CLOSED: 0}.get(why, 3)
    assert exit_code(Refused(why, "", 0.0)) == {Why.LIMITS: 2, Why.UNFIT: 4}.get(why, 3)


@pytest.mark.parametrize("signum", signal.Signals)
def test_an_agent_stopped_by_signal_n_is_128_plus_n(signum: signal.Signals) -> None:
    assert exit_code(Stopped(signum)) == 128 + signum


def test_the_table_has_every_exit_code_and_so_have_the_manual_and_the_pages() -> None:
    codes = {code for name, code in vars(exit_codes).items() if name.isupper() and isinstance(code, int)}
    assert {int(code.partition("+")[0]) for code in EXITS} == codes and len(codes) == 8
    told = manual.EPILOG.partition("Exit codes")[2]
    for code, (means, answer) in EXITS.items():
        assert f"  {code} {means} → {answer.value}\n" in told
        for page in ("README.md", "docs/operate.md"):
            assert f"\n| {code} | {means} | {answer.value} |\n" in (ROOT / page).read_text()


def test_each_outcome_has_a_row_in_the_table() -> None:
    ends: list[Outcome] = [Unawaited(), Drained("x"), Stopped(9), *(Refused(why, "", 0.0) for why in Why)]
    codes = {exit_code(each) for each in (*ends, *(Verdict(ending, 0, ME, Why.FAILED) for ending in Ending))}
    assert {f"{code}" if code < SIGNALLED else "128+n" for code in codes} | {"6"} == EXITS.keys()


@pytest.mark.parametrize("command", ["launch", *LATER])
def test_the_help_of_a_command_has_no_mark_of_click_s_in_it(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) > 5 and not [line for line in lines if "\b" in line or "\\x" in line]


def printed_to(stdout: int, *arguments: str) -> tuple[int, str]:
    """Run a command that succeeds and prints; return its exit code and its standard error."""
    command = [sys.executable, "-m", "elastic", *arguments]
    ended = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return ended.returncode, ended.stderr


PRINT = (("simulate", "--runs", "1"), ("--help",), *((name, "--help") for name in ("launch", *LATER)))


@pytest.mark.parametrize("arguments", PRINT, ids=" ".join)
def test_a_command_whose_output_is_lost_does_not_tell_the_job_s_failure(arguments: Sequence[str]) -> None:
    with open("/dev/full", "w") as full:
        told = printed_to(full.fileno(), *arguments)
    assert told == (os.EX_IOERR, "elastic: standard output: no space left on device\n")


@pytest.mark.parametrize("arguments", PRINT, ids=" ".join)
def test_a_command_whose_reader_has_gone_ends_with_the_code_that_it_has_anyway(arguments: Sequence[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert printed_to(writer, *arguments) == (0, "")
    os.close(writer)


SHADOWS = "signal queue select socket json string random struct enum logging dataclasses multiprocessing".split()
SHADOWS += "attrs click msgspec torch core adapters cli inprocess".split()
IN_SHADOW = (
    (("status", "--rdzv-endpoint=a b"), 2, "elastic: --rdzv-endpoint=a b: "),
    (("goodput", "none"), 2, "elastic: none: no such file or directory\n"),
    (("simulate", "--runs=1", "--jobs=2"), 0, ""),
    (("simulate", "--calls", "--runs=1", "--jobs=2"), 0, ""),
    (("launch", "--nproc-per-node=2", "--standby", "--status=off", "train.py"), 0, ""),
)


@pytest.mark.usefixtures("gone")
def test_in_a_folder_that_was_removed_no_other_folder_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import atexit, sys\natexit.register(lambda: print(sys.path[0]))\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "elastic", "--version"], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.stdout.splitlines()[1:] == [str(tmp_path)], ended.stderr


@pytest.mark.parametrize("way", ["-m elastic", "elastic"])
@pytest.mark.parametrize(("arguments", "code", "said"), IN_SHADOW, ids=[arguments[0] for arguments, *_ in IN_SHADOW])
def test_a_command_imports_nothing_from_the_folder_in_which_it_is_run(
    tmp_path: Path, way: str, arguments: Sequence[str], code: int, said: str
) -> None:
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of the folder was imported')\n")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "train.py").write_text("print('trains')\n")
    given = [f"deeper/{each}" if each == "train.py" else each for each in arguments]
    command = [sys.executable, "-m", "elastic"] if way == "-m elastic" else [ELASTIC]
    ended = subprocess.run([*command, *given], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
    assert "of the folder" not in ended.stderr + ended.stdout
    assert ended.stderr.startswith(said)
