"""The check that nothing stays behind must itself be able to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import leftovers
import pytest

pytest_plugins = ["pytester"]

SLEEPER = [sys.executable, "-S", "-c", "import sys; print('up', flush=True); sys.stdin.read()"]


def sleeper(token: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, leftovers.VARIABLE: token}
    process = subprocess.Popen(SLEEPER, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def test_a_process_is_found_by_its_token_and_only_that_one_is_killed() -> None:
    with sleeper("mine") as mine, sleeper("other") as other:
        found = leftovers.alive_with("mine")
        assert [process.pid for process in found] == [mine.pid]
        assert "sys.stdin.read()" in str(found[0])

        leftovers.kill(found, "mine")
        assert mine.wait(timeout=10) == -9
        assert leftovers.alive_with("mine") == []

        leftovers.kill([leftovers.Process(other.pid, "")], "mine")
        assert other.poll() is None
        other.kill()


def test_a_process_that_ends_by_itself_in_time_was_not_left() -> None:
    with sleeper("ending") as process:
        assert process.stdin is not None
        process.stdin.close()
        assert leftovers.left_after("ending", settle_s=10) == []


def test_the_fixture_fails_a_test_that_leaves_an_orphan_and_names_it(pytester: pytest.Pytester) -> None:
    own = Path(__file__).parent
    pytester.makeconftest((own / "conftest.py").read_text().replace("SETTLE_S = 10.0", "SETTLE_S = 0.1"))
    pytester.makepyfile(
        """
        import subprocess

        def test_orphan(nothing_left):
            subprocess.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & sleep 60 >/dev/null 2>&1 &"], check=True)

        def test_clean(nothing_left):
            subprocess.run(["true"], check=True)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", f"-opythonpath={own}")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["left behind, killed now:", "  pid *: sleep 60", "  pid *: sleep 60"])
