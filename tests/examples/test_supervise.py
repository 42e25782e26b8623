"""The loop of examples/supervise.sh starts an agent again where that helps, and ends where it does not."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest
from launches import TIMEOUT_S
from processes import comes_true, is_alive

from elastic.cli.exit_codes import EXITS, Answer

SCRIPT = Path(__file__).parents[2] / "examples/supervise.sh"
ENDS = [int(code) for code, (_, answer) in EXITS.items() if answer not in (Answer.AGAIN, Answer.ASK)]


def supervised(agent: str, folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the loop over an agent that is this shell script."""
    return subprocess.run(
        ["sh", str(SCRIPT), "sh", "-c", f"echo x >>ran; {agent}"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PAUSE_S": "0", **given},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize("code", ENDS)
def test_it_ends_with_a_code_after_which_no_start_here_helps(code: int, tmp_path: Path) -> None:
    assert supervised(f"exit {code}", tmp_path).returncode == code
    assert (tmp_path / "ran").read_text().count("x") == 1


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_it_starts_again_what_found_no_seat_or_was_killed(end: str, tmp_path: Path) -> None:
    ended = supervised(f"[ $(wc -l <ran) = 3 ] || {{ {end}; }}", tmp_path)
    assert ended.returncode == 0 and ended.stderr.count("it starts again in") == 2
    assert (tmp_path / "ran").read_text().count("x") == 3


@pytest.mark.parametrize(("good_s", "pauses"), [("1000", [1, 2, 4]), ("0", [1, 1, 1])])
def test_the_pause_grows_and_is_the_first_one_again_after_a_run_that_was_long_enough(
    good_s: str, pauses: list[int], tmp_path: Path
) -> None:
    """No time passes: its `sleep` is ours."""
    (tmp_path / "sleep").symlink_to("/bin/true")
    given = {"PAUSE_S": "1", "GOOD_S": good_s, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    ended = supervised("[ $(wc -l <ran) = 4 ] || exit 3", tmp_path, **given)
    assert [int(text) for text in re.findall(r"it starts again in (\d+) s", ended.stderr)] == pauses


def test_a_signal_to_the_loop_ends_the_agent_and_the_loop(tmp_path: Path) -> None:
    agent = "trap 'exit 143' TERM; echo $$ >new; mv new pid; while :; do sleep 0.05; done"
    with subprocess.Popen(["sh", str(SCRIPT), "sh", "-c", agent], cwd=tmp_path, stderr=subprocess.DEVNULL) as loop:
        try:
            assert comes_true((tmp_path / "pid").exists)
            loop.send_signal(signal.SIGTERM)
            assert loop.wait(TIMEOUT_S) == 143
            assert not is_alive(int((tmp_path / "pid").read_text()))
        finally:
            loop.kill()


def test_a_signal_that_comes_as_the_agent_starts_is_not_lost(tmp_path: Path) -> None:
    """`eval` runs in the child of the loop, which then may not yet know the child's pid."""
    agent = ("eval", "kill -TERM $$; exec sh -c 'while :; do sleep 0.05; done'")
    for _ in range(20):
        ended = subprocess.run(["sh", str(SCRIPT), *agent], cwd=tmp_path, timeout=TIMEOUT_S, check=False)
        assert ended.returncode == 143
