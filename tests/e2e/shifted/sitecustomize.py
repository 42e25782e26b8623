"""A host whose wall clock is wrong: on PYTHONPATH, this shifts what a program takes for the time of day, nothing else.

gRPC hands points in time from its Python half to its C half, which reads the kernel's clock; on a real host both are wrong
alike, so here both are told the truth.
"""

from __future__ import annotations

import os
import sys
import time

true_time = time.time
shift_s = float(os.environ["ELASTIC_TEST_SHIFT_S"])


def shifted_time() -> float:
    asks = sys._getframe(1).f_globals.get("__name__", "")
    return true_time() + (0.0 if asks.startswith("grpc.") else shift_s)


time.time = shifted_time
