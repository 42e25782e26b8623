"""With several runners the property tests are all one's, and the others go on with the rest."""

from __future__ import annotations

import re
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
