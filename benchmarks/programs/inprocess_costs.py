"""What a wrapped function pays while nothing goes wrong, under one wrapper or the other.

    inprocess_costs.py elastic|peer

Prints nanoseconds, one line each, as `0 WORD NANOSECONDS 0`: `alone`: a step before the call; `wrapped`: the same step
in the function; `ping`: one ping. Of each the best of several batches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

if sys.argv[1] == "elastic":
    import elastic.inprocess as inprocess
else:
    import nvidia_resiliency_ext.inprocess as inprocess  # type: ignore[no-redef]

BATCHES, STEPS = 5, 2_000


def step() -> float:
    return sum(number * 0.5 for number in range(20))


def best(code: Callable[[], object]) -> int:
    taken = []
    for _ in range(BATCHES):
        began = time.perf_counter_ns()
        for _ in range(STEPS):
            code()
        taken.append((time.perf_counter_ns() - began) / STEPS)
    return round(min(taken))


def train(call: Any = None) -> None:
    for word, code in (("wrapped", step), ("ping", call.ping)):
        print(0, word, best(code), 0, flush=True)


train.__annotations__["call"] = inprocess.CallWrapper
print(0, "alone", best(step), 0, flush=True)
inprocess.Wrapper()(train)()
