"""The one source of chance: `choose(n)` returns a whole number from 0 to n - 1.

The driver of the simulator provides it: Hypothesis, or a seed. A seed gives the same numbers on every Python and every
machine. The generator is a few lines of our own: Knuth's linear congruential generator of 64 bits, its upper half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

Choose: TypeAlias = Callable[[int], int]

T = TypeVar("T")

_MASK = (1 << 64) - 1


def seeded(seed: int) -> Choose:
    """Return the choices of this seed."""
    state = mixed(seed)

    def choose(n: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        return (state >> 32) % n

    return choose


def mixed(seed: int) -> int:
    """Mix a seed to 64 bits, so that neighbouring seeds have nothing in common (splitmix64's finalizer)."""
    bits = (seed + 0x9E3779B97F4A7C15) & _MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


def one(choose: Choose, of: Sequence[T]) -> T:
    """Choose one of these."""
    return of[choose(len(of))]
