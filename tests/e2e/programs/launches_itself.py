"""launches_itself.py METHOD: launch a function of this very module, whose workers have a child each and one with a
session of its own that executes nothing, and stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import stage

import elastic
from elastic.adapters.workers.start.function_call import StartMethod

FAMILY = Path(__file__).with_name("family.py")


def stay() -> None:
    subprocess.Popen([sys.executable, FAMILY])
    if os.fork() == 0:
        os.setsid()
        stage.tell("session")
        stage.wait_for_signal()
    stage.tell("worker")
    stage.wait_for_signal()


if __name__ == "__main__":
    method = cast("StartMethod", sys.argv[1])
    elastic.launch(elastic.LaunchSettings(nproc_per_node=2, start_method=method))(stay)
