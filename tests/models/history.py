"""A program that makes long random runs and prints a digest of each: of every ask and of every state of the register.

property_tests/test_determinism.py runs it under more than one PYTHONHASHSEED.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from random import Random

from smallworld import Told
from wander import Wanderer

from elastic.core.rendezvous.codec import encode


def digest(seed: int, steps: int) -> str:
    """Return the digest of the run with this seed."""
    wanderer, hashed = Wanderer(Random(seed).randrange), sha256()
    judge = wanderer.agents.world.tell

    def tell(told: Told) -> None:
        judge(told)
        hashed.update(f"{told.who} {told.ask}".encode())
        hashed.update(encode(told.stands) if told.stands else b"nothing")

    wanderer.agents.world.tell = tell
    wanderer.runs(steps)
    return hashed.hexdigest()


if __name__ == "__main__":
    print(*(digest(seed, int(sys.argv[2])) for seed in range(int(sys.argv[1]))), sep="\n")
