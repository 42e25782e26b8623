"""The checks of the wrapper's parameters and environment variables. Each error names the parameter and its value.

A wrong type raises TypeError, a value that cannot work ValueError.
"""

from __future__ import annotations

import math
import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from ....core.policies import Policy, chain, shift
from ....core.world import NAME_MAX, Party, came_later
from ...store import numerals
from ...workers.start.environment import GENERATION, LABELS, PARTY, STANDBYS

Duration: TypeAlias = timedelta | float | int

REPLACE_WAIT_S = 0.5
"""A standby is in the function of the next iteration sooner. A process that imports torch first is not."""


LONGEST_S: Final = 1e9
"""The longest span: 31 years. The kernel and the shared page count nanoseconds in 64 bits."""


def seconds(name: str, value: object) -> float:
    """Return a span of any length; inf for a number that no float holds."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: a timedelta or seconds, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def span(name: str, value: object) -> float:
    """Return a span that timers can measure."""
    if (found := seconds(name, value)) > LONGEST_S:
        raise ValueError(f"{name}: at most {LONGEST_S:.0f} seconds, not {found:g}")
    return found


def count(name: str, value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"{name}: a whole number or None, not {value!r}")
    return value


def at_least_one(name: str, value: object) -> int:
    if (number := count(name, value)) is None:
        raise TypeError(f"{name}: a whole number, not None")
    if number < 1:
        raise ValueError(f"{name}: at least 1, not {number}")
    return number


def yes_or_no(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}: True or False, not {value!r}")
    return value


def something_to_call(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise TypeError(f"{name}: something to call, or None, not {value!r}")
    return value


def path(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name}: a path or None, not {value!r}")
    return value


def absolute_path(name: str, value: object) -> str | None:
    text = path(name, value)
    if text is not None and not Path(text).is_absolute():
        raise ValueError(f"{name}: an absolute path, not {text!r}")
    return text


def policy(given: object) -> Policy:
    """Return one policy, made of all that were given, in their order."""
    if given is None:
        return shift()
    several = [given] if isinstance(given, Policy) else given
    if not isinstance(several, list | tuple) or not all(isinstance(each, Policy) for each in several):
        raise TypeError(f"rank_assignment: policies of elastic.inprocess, not {given!r}")
    return chain(*several)


def number(variable: str, default: int, least: int = 0) -> int:
    """Return an environment variable as a number. Raises ValueError, which names the variable and its value."""
    text = os.environ.get(variable, str(default))
    found = numerals.number(os.fsencode(text))
    if found is None or found < least:
        raise ValueError(f"{variable}={text}: a whole number, at least {least}")
    return found


def replace_wait_s() -> float:
    """Return how long the replacement of a killed rank is waited for by default."""
    return REPLACE_WAIT_S if number(STANDBYS, 0) else 0.0


def labels() -> tuple[tuple[str, str], ...]:
    """Return the labels of this rank's node."""
    pairs = (each.partition("=") for each in os.environ.get(LABELS, "").split(",") if each)
    return tuple(sorted((name, value) for name, _, value in pairs))


ALONE = Party("alone", 1)
"""The party of each rank that no launcher of ours has started: it waits for nobody."""


def party() -> Party:
    """Return with whom the launcher has started this rank. Raises ValueError."""
    if not (given := os.environ.get(PARTY)):
        return ALONE
    size, _, name = given.partition(" ")
    try:
        return Party(
            name[-NAME_MAX:], numerals.number(os.fsencode(size)) or 0
        )  # a node may have a longer name than a party
    except ValueError as error:
        raise ValueError(f"{PARTY}={given}: a number and a node ({error})") from None


def slot(rank: int) -> str:
    """Return the slot of the rank whose number at its start was this. Where nodes come and go beside processes that run on,
    a number may be given twice: then the round in which its node came tells them apart."""
    came_in, generation = number("ELASTIC_ROUND", 0), os.environ.get(GENERATION)
    return str(rank) if generation in (None, str(came_in)) else came_later(rank, came_in)


def rank_and_world_size() -> tuple[int, int]:
    rank, world_size = number("RANK", 0), number("WORLD_SIZE", 1, least=1)
    if rank >= world_size:
        raise ValueError(f"RANK={rank}, WORLD_SIZE={world_size}: ranks begin at 0, so the last is {world_size - 1}")
    return rank, world_size
