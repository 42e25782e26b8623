"""With several runners the property tests are all one's, and the others go on with the rest; each target has its tests."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPUTE, WAIT = "property_tests/test_ranks.py", "tests/core/test_policies.py"


def test_the_property_tests_are_in_one_runner_and_others_beside_them() -> None:
    command = [sys.executable, "-m", "pytest", "-v", "-n2", "-pno:cacheprovider", COMPUTE, WAIT]
    said = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    done = re.findall(r"^\[(gw\d)\] .*PASSED (.*?)::", said, flags=re.MULTILINE)
    runners = {path: {runner for runner, of in done if of == path} for path in (COMPUTE, WAIT)}
    assert len(runners[COMPUTE]) == 1 and runners[WAIT] - runners[COMPUTE], said


SOME = "property_tests/test_small_worlds.py", "tests/e2e/test_causes.py", "tests/e2e/test_frameworks.py"


def collected(target: str) -> list[str]:
    """Return the tests of SOME that this target of the Makefile runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    commands = subprocess.run(
        ["make", "-n", target], check=True, cwd=ROOT, capture_output=True, text=True, env=environment
    )
    (command,) = [line for line in commands.stdout.splitlines() if "/pytest --numprocesses" in line]
    listing = [*shlex.split(command), "--collect-only", "-q", "-pno:cacheprovider", *SOME]
    said = subprocess.run(listing, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    return [line for line in said.splitlines() if "::" in line]


def test_each_test_is_in_test_or_in_test_long_and_test_all_has_both() -> None:
    quick, long, all = (collected(target) for target in ("test", "test-long", "test-all"))
    assert quick and long
    assert sorted([*quick, *long]) == sorted(all)


def test_core_fast_leaves_no_test_of_the_core_out() -> None:
    assert [path for path in (ROOT / "tests" / "core").rglob("*.py") if "mark.long" in path.read_text()] == []
