"""The marks of progress that user code leaves, as the thread that decides reads them."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from spans import stage

from elastic.adapters.inprocess.gate.bytecode_progress import marks
from elastic.adapters.inprocess.shared_page import NS, STAMP
from elastic.core.inprocess.progress_limits import Limits, Marks
from elastic.core.inprocess.timers import Timers, passed, until
from elastic.core.inprocess.words import Deadline, Elapsed, Timer

SOFT = 3
LATE = """
import ctypes, gc, threading
from elastic.adapters.inprocess.shared_page import Page
from elastic.adapters.inprocess.gate.bytecode_progress import Progress

kept = []

def somebody_else(_):
    print("called for nothing")
    return 0

def call():
    page = Page.new()
    assert Progress(page).probe(1)
    page.close()
    gc.collect()
    kept.extend(ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(somebody_else) for _ in range(1_000))

thread = threading.Thread(target=call)
thread.start()
thread.join()
print("over")
"""
"""The main thread waits in C for the one that made the call, so it makes the probe's call when that is long over."""


def test_the_limits_hold_from_the_last_mark_and_not_once_the_code_is_over() -> None:
    """It may be heard later than it is that the code is over, which ran for longer than the limit and never stood still."""
    with stage() as on:
        order = on.order(lambda: seen.append(marks(on.page.words, order.token)))
        seen = [marks(on.page.words, order.token)]
        on.gate.run(order)
        seen.append(marks(on.page.words, order.token))
        begun_at = on.page.words[STAMP] / NS
    limits = Limits(math.inf, math.inf)
    assert seen[:2] == [None, Marks(begun_at, limits)]
    soft = Deadline(Timer.SOFT, order.token, SOFT)
    timers = Timers({soft: 0.0})
    assert [until(timers, each) for each in seen] == [SOFT, math.inf, math.inf]
    assert passed(timers, 1e9, seen[0])[1] == (Elapsed(soft),)
    assert passed(timers, 1e9, seen[2]) == (timers, ())


@pytest.mark.usefixtures("nothing_left")
def test_a_main_thread_that_comes_back_when_the_call_is_over_calls_nothing_that_is_gone() -> None:
    ran = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "over\n", "")
