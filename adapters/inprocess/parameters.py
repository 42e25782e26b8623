"""What the wrapper's parameters may be: a wrong type is a TypeError, a value that cannot work a ValueError, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from ...core.policies import Policy, chain, shift
from .stores import Store, store_of_the_launcher

Duration: TypeAlias = timedelta | float | int


def seconds(name: str, value: object) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: a timedelta or seconds, not {value!r}")
    return float(value)


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
    """One policy, or several, one after the other."""
    if given is None:
        return shift()
    several = [given] if isinstance(given, Policy) else given
    if not isinstance(several, list | tuple) or not all(isinstance(each, Policy) for each in several):
        raise TypeError(f"rank_assignment: policies of elastic.inprocess, not {given!r}")
    return chain(*several)


def store_to_make(factory: Any, given: object) -> Callable[[], Store]:
    """By default the launcher's."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"store_kwargs: named arguments, not {given!r}")
    made = something_to_call("store_factory", factory) or store_of_the_launcher
    return functools.partial(made, **(given or {}))
