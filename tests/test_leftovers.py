"""The check that nothing stays behind must itself be able to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

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
    token = uuid4().hex
    with sleeper(token) as mine, sleeper(uuid4().hex) as other:
        found = leftovers.alive_with(token)
        assert [process.pid for process in found] == [mine.pid]
        assert "sys.stdin.read()" in str(found[0])

        leftovers.kill(found, token)
        assert mine.wait() == -9
        assert leftovers.alive_with(token) == []

        leftovers.kill([leftovers.Process(other.pid, "")], token)
        assert other.poll() is None
        other.kill()


def test_a_process_that_ends_by_itself_in_time_was_not_left() -> None:
    token = uuid4().hex
    with sleeper(token) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert leftovers.left_after(token, settle_s=60) == []


def test_the_fixture_fails_a_test_that_leaves_an_orphan_and_names_it(pytester: pytest.Pytester) -> None:
    own = Path(__file__).parent
    pytester.makeconftest((own / "leftover_processes.py").read_text().replace("SETTLE_S = 90.0", "SETTLE_S = 0.1"))
    pytester.makepyfile(
        """
        import subprocess

        from leftovers import alive_with
        from processes import comes_true

        def test_orphan(nothing_left):
            subprocess.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & sleep 60 >/dev/null 2>&1 &"], check=True)
            assert comes_true(lambda: [each.command for each in alive_with(nothing_left)] == ["sleep 60"] * 2)

        def test_clean(nothing_left):
            subprocess.run(["true"], check=True)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", f"-opythonpath={own}")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["left behind, killed now:", "  pid *: sleep 60", "  pid *: sleep 60"])
