"""hung_import.py HANDLER [NAME=VALUE…]: rank 1 hangs in an import in iteration 0, and its monitor ends it by SIGTERM.

HANDLER says what the program's own handler of SIGTERM does; `none`: there is no handler. The others run on until both are
there again. NAME=VALUE is for the wrapper.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from types import FrameType

import stage

from elastic.inprocess import CallWrapper, Wrapper

HANDLER, *OPTIONS = sys.argv[1:]
INTERVALS = dict.fromkeys(("monitor_thread_interval", "monitor_process_interval", "progress_watchdog_interval"), 0.1)
GIVEN = {name: float(text) for name, text in (each.split("=") for each in OPTIONS)}


def ends(signum: int, frame: FrameType | None) -> None:
    raise {"exits": SystemExit(0), "interrupts": KeyboardInterrupt(), "raises": ValueError("told to go")}[HANDLER]


@Wrapper(soft_timeout=0.5, hard_timeout=1.5, unwind_timeout=1.0, **INTERVALS, **GIVEN)  # type: ignore[arg-type]
def train(call: CallWrapper | None = None) -> None:
    assert call
    stage.tell("in", call.iteration, "of", os.environ["WORLD_SIZE"])
    if call.iteration == 0 and stage.rank == 1:
        importlib.import_module("hangs_in_import")
    with call.disable_hang_protection():
        while call.iteration == 0 or os.environ["WORLD_SIZE"] != "2":
            time.sleep(0.02)


if HANDLER != "none":
    signal.signal(signal.SIGTERM, ends)
train()
stage.tell("returned")
