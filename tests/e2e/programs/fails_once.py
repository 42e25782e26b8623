"""Rank 1 fails in round 0, when the test says so; the others wait for the end of that round. Tells what it was before."""

import colorsys
import os
import sys
import time

import stage


def main() -> None:
    with open("/proc/self/environ", "rb") as environment:
        was_standby = b"\0ELASTIC_STANDBY=" in b"\0" + environment.read()
    stage.tell("standby" if was_standby else "fresh", os.environ["WORLD_SIZE"], colorsys.__name__)
    alone = os.environ["ELASTIC_RESTART_SCOPE"] == "rank"
    if not stage.gate_is_open() or (alone and stage.rank != 1):
        stage.wait_for_gate(int(alone and stage.rank != 1))
        if "end" in sys.argv:
            return
        if stage.rank == 1:
            raise RuntimeError("as told")
        if not alone:
            time.sleep(1000)


if __name__ == "__main__":
    main()
