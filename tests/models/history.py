"""One long run by a seed: prints a digest of every ask on the way and of every state.

Run as a program by property_tests/test_determinism.py, under more than one PYTHONHASHSEED.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from random import Random

from smallworld import Told
from wander import Wanderer

from elastic.core.rendezvous.codec import encode


def digest(seed: int, steps: int) -> str:
    """The same seed, the same digest."""
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
