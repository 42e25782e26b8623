"""The orphans that an agent, or what forks its workers, has at its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from elastic.adapters.workers.start.programs import find_setpriv
from elastic.adapters.workers.watch import orphans

WITH_ANOTHER_USERS = """
import os, subprocess, sys
from elastic.adapters.workers.start import function
from elastic.adapters.workers.watch.orphans import Orphans

def child(*words):
    return subprocess.Popen([*words, "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE)

orphans = Orphans()
before, another_users, after = child(), child("setpriv", "--reuid=1"), child()
for each in (before, another_users, after):
    each.stdout.readline()  # so setpriv has done its work
print(another_users.pid)
try:
    orphans.kill() if sys.argv[1] == "an agent" else function._kill_descendants()
except OSError as error:
    print(error)
print(*(each.pid for each in (before, another_users, after) if os.path.exists(f"/proc/{each.pid}")))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start a process as another user")
@pytest.mark.parametrize("of", ["an agent", "a fork server"])
def test_an_orphan_that_may_not_be_killed_saves_no_other(of: str) -> None:
    """A root without CAP_KILL may kill no process of another user, such as one that sudo has started."""
    here = [find_setpriv(), "--bounding-set=-kill", sys.executable, "-c", WITH_ANOTHER_USERS, of]
    said = subprocess.run(here, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    os.kill(int(said[0]), signal.SIGKILL)
    told = [f"orphans that could not be killed live on: {said[0]}"] if of == "an agent" else []
    assert said[1:] == [*told, said[0]]


SPARED = """
import subprocess
from contextlib import nullcontext
from elastic.adapters.workers.watch.orphans import Orphans

spared = []
orphans = Orphans(lambda: nullcontext([each.pid for each in spared]))
spared += [subprocess.Popen(["sleep", "1000"])]
other = subprocess.Popen(["sleep", "1000"])
orphans.kill()
print(spared[0].poll(), other.wait())
spared[0].kill()
"""


def test_a_child_that_outlives_the_others_is_spared() -> None:
    """The store's helper that was started last: the others still ask it."""
    said = subprocess.run([sys.executable, "-c", SPARED], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said == "None 0\n", "reaped by the orphans, so nobody knows its exit code any more"


def test_a_host_that_lacks_what_adoption_takes_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[bool]()

    def ask(asks: bool) -> None:
        asked.append(asks)
        if len(asked) == 1:
            raise OSError("too many open files")

    monkeypatch.setattr(orphans, "_ask_for_orphans", ask)
    made = orphans.Orphans()
    with pytest.raises(OSError, match="too many"):
        made.adopt()
    made.adopt()
    made.adopt()
    assert asked == [True, True]


BEFORE = """
import os, subprocess
from elastic.adapters.workers.watch.orphans import Orphans

def dead(code):
    child = subprocess.Popen(["sh", "-c", f"exit {code}"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child

before = dead(7)
orphans = Orphans()
after, own = dead(8), dead(9)
orphans.reap({own.pid})
print(before.wait(), after.wait(), own.wait())
"""


def test_only_orphans_are_reaped_and_no_child_of_before_or_of_others() -> None:
    said = subprocess.run([sys.executable, "-c", BEFORE], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said == "7 0 9\n", "of what was reaped here nobody knows the exit code any more"
