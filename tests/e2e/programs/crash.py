"""crash.py HOW [ROUNDS]: rank 1 fails in the first ROUNDS rounds (1 if not given), the others wait to be stopped.

HOW is `code:N`, `signal:N`, `raise`, `record` (an exception under torch's @record) or `both` (rank 0 fails too, at the
same time). In later rounds all succeed. Whoever fails or succeeds tells its restart count first.
"""

from __future__ import annotations

import os
import sys

import stage


def fail(how: str) -> None:
    kind, _, number = how.partition(":")
    match kind:
        case "code":
            sys.exit(int(number))
        case "signal":
            os.kill(os.getpid(), int(number))
            stage.wait_for_signal()
        case "both":
            stage.wait_for_gate()
            os._exit(3)
        case "record":
            from torch.distributed.elastic.multiprocessing.errors import record

            record(step)()
        case _:
            step()


def step() -> None:
    raise ValueError("no such sample")


def main(how: str, rounds: int) -> None:
    fails = stage.round < rounds
    if fails and stage.rank != 1 and how != "both":
        stage.wait_for_signal()
    stage.tell(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if fails:
        fail(how)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 1)
