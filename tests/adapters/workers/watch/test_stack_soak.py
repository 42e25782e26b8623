"""Thousands of looks at a training with threads, processes and C extensions: none harms it, none changes its result."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import TIMEOUT_S
from profiles import SOAK

from elastic.adapters.launch_settings import STACKS_SIGNAL
from elastic.adapters.workers.start_up import StackHandler, StartUp
from elastic.adapters.workers.watch.stacks import see

HANDLER = StackHandler(STACKS_SIGNAL, 1023)
TRAINS = Path(__file__).parents[1] / "programs" / "trains.py"
DUMPS = 10_000


def begun(handler: StackHandler | None) -> subprocess.Popen[bytes]:
    environment = StartUp(handler, 1022).environment(os.environ) if handler else None
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-u", TRAINS], env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def ended(training: subprocess.Popen[bytes]) -> list[bytes]:
    """What each training came to; nothing was said on stderr, and it ended in order."""
    out, err = training.communicate(timeout=10 * TIMEOUT_S)
    assert (training.returncode, err) == (0, b"")
    return out.split()


@pytest.mark.skipif(not SOAK, reason="minutes: HYPOTHESIS_PROFILE=soak")
@pytest.mark.timeout(0)
def test_ten_thousand_dumps_change_no_result_of_a_training() -> None:
    with begun(None) as undisturbed:
        assert undisturbed.stdout
        expected = undisturbed.stdout.readline().strip()
        assert set(ended(undisturbed)) <= {expected}
    with begun(HANDLER) as training:
        began, dumps, places = time.monotonic(), 0, set[str]()
        while dumps < DUMPS:
            seen = see({0: training.pid}, HANDLER)
            assert seen, (dumps, training.wait(TIMEOUT_S), training.communicate())
            sighting = seen[0]
            dumps += sighting.text != "" and not sighting.is_cut
            places.add(sighting.place)
        took_s = time.monotonic() - began
        found = ended(training)
    assert set(found) == {expected}
    print(f"{dumps} dumps in {took_s:.0f} s at {len(places)} places; {len(found)} trainings, all with the same weights")
