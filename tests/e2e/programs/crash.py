"""crash.py HOW [ROUNDS]: rank 1 fails in the first ROUNDS rounds (1 if not given), the others wait to be stopped.

HOW is `code:N`, `signal:N`, `raise`, `record` (an exception under torch's @record), `hostile` (an error file that a terminal
would obey) or `both` (rank 0 fails too, at the same time). In later rounds all succeed. Whoever fails or succeeds tells its
restart count first.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import stage

HOSTILE = "\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\x00"


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
        case "hostile":
            stack = f'  File "/train{HOSTILE}.py", line 1, in step{HOSTILE}\n'
            message = {"message": HOSTILE, "extraInfo": {"py_callstack": stack, "timestamp": "1"}}
            Path(os.environ["TORCHELASTIC_ERROR_FILE"]).write_text(json.dumps({"message": message}))
            print(HOSTILE, file=sys.stderr)
            sys.exit(1)
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
