"""A frozen value with some of its fields changed: `attrs.evolve` for classes whose fields are all given at birth.

The core makes a new value at every step, and half of attrs' own time goes into asking the class for its fields each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from attrs import AttrsInstance, fields

T = TypeVar("T", bound=AttrsInstance)


@cache
def _shape(kind: type[AttrsInstance]) -> tuple[Callable[[Any], tuple[Any, ...]], Mapping[str, int]]:
    """How to read all its fields at once, and the place of each. `attrgetter` of one name gives no tuple: one name more."""
    names = [each.name for each in fields(kind) if each.init]
    return attrgetter(*names, "__class__"), {name: place for place, name in enumerate(names)}


def evolve(value: T, **changes: Any) -> T:
    """The same value, but for these fields; validators and converters run as at any birth."""
    kind = type(value)
    read, places = _shape(kind)
    values = list(read(value)[:-1])
    for name, changed in changes.items():
        values[places[name]] = changed
    return kind(*values)
