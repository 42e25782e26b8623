"""tell_all.py [DEEDS...]: say a line on each stream, write arguments and environment down, then do the deeds.

A deed is NAME[=VALUE][@RANK][#START]: only the worker of that rank does it, only in its START-th start (from 0).
exit=CODE · kill=SIGNAL · stay (until a signal ends it) · mumble (words without an end of line). Before the first deed all
workers of this start have told: whoever has told has said its lines, which no other's end cuts off any more. Any other
word is an argument.
"""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["PARITY_FOLDER"])
TIMEOUT_S = 300.0
DEED = re.compile(r"(exit|kill|stay|mumble)(?:=(\w+))?(?:@(\d+))?(?:#(\d+))?")


def begin(rank: str) -> int:
    """Which start of this rank it is."""
    start = 0
    while True:
        try:
            (FOLDER / f"{rank}.{start}").touch(exist_ok=False)
        except FileExistsError:
            start += 1
        else:
            return start


def tell(rank: str, start: int) -> None:
    draft = FOLDER / f"{rank}.{start}.draft"
    draft.write_text(json.dumps({"arguments": sys.argv[1:], "environment": dict(os.environ)}))
    draft.rename(FOLDER / f"{rank}.{start}.json")


def wait_for_all(start: int) -> None:
    ends_at = time.monotonic() + TIMEOUT_S
    while len([*FOLDER.glob(f"*.{start}.json")]) < int(os.environ["WORLD_SIZE"]) and time.monotonic() < ends_at:
        time.sleep(0.01)


def do(name: str, value: str) -> None:
    match name:
        case "exit":
            sys.exit(int(value))
        case "kill":
            os.kill(os.getpid(), signal.Signals[value])
        case "mumble":
            sys.stdout.write("words without an end")
        case _:
            while True:
                signal.pause()


def main() -> None:
    rank = os.environ["RANK"]
    start = begin(rank)
    print(f"out of {rank}.{start}", flush=True)
    print(f"err of {rank}.{start}", file=sys.stderr, flush=True)
    tell(rank, start)
    mine = [
        (name, value)
        for name, value, whose, when in (found.groups() for found in map(DEED.fullmatch, sys.argv[1:]) if found)
        if whose in (None, rank) and when in (None, str(start))
    ]
    if any(map(DEED.fullmatch, sys.argv[1:])):
        wait_for_all(start)
    for deed in mine:
        do(*deed)


if __name__ == "__main__":
    main()
