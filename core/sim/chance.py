"""The one source of chance: `choose(n)`, a whole number from 0 to below n.

Whoever drives the simulator says where it comes from: Hypothesis, or a seed. A seed gives the same numbers on every Python,
on every machine: the generator is our own few lines (splitmix64; Steele, Lea, Flood 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

Choose: TypeAlias = Callable[[int], int]

T = TypeVar("T")

_MASK = (1 << 64) - 1


def seeded(seed: int) -> Choose:
    """The choices of this seed."""
    state = seed & _MASK

    def choose(n: int) -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % n

    return choose


def one(choose: Choose, of: Sequence[T]) -> T:
    """One of these."""
    return of[choose(len(of))]
