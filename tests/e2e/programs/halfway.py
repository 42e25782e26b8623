"""halfway.py SCRIPT [ARGUMENTS...]: examples/digits/train.py, which the first time stands still in the middle of epoch 3.

All ranks tell that they are there, and go on when the gate opens.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from types import SimpleNamespace

import stage

STEP = 50
"""An epoch has 22."""
del sys.argv[0]
spec = spec_from_file_location("train", sys.argv[0])
assert spec and spec.loader
train = module_from_spec(spec)
spec.loader.exec_module(train)
steps = count(1)


def sleep(span_s: float) -> None:
    """Called at the end of each step."""
    if next(steps) == STEP and train.restarts() == "0":
        stage.tell("in the middle of epoch 3")
        stage.wait_for_gate()


train.time = SimpleNamespace(sleep=sleep)  # type: ignore[attr-defined]
train.main()
