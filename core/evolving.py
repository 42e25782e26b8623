"""A frozen value with some of its fields changed: `attrs.evolve` for classes whose fields are all given at birth.

The core makes a new value at every step, and most of attrs' own time goes into asking the class for its fields each time,
and into setting them past the freeze. So all is asked once, and a value is born soft and frozen when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from attrs import AttrsInstance, define, fields, frozen

T = TypeVar("T", bound=AttrsInstance)


@frozen
class _Shape:
    read: Callable[[Any], tuple[Any, ...]]
    """All its fields, and its class: `attrgetter` of one name would give no tuple."""
    places: Mapping[str, int]
    soft: Callable[..., Any]
    """A class of the same layout that is not frozen: its birth is twice as fast."""


@cache
def _shape(kind: type[AttrsInstance]) -> _Shape:
    names = [each.name for each in fields(kind) if each.init]
    thawed = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    soft = type(kind.__name__, (kind,), thawed)
    places = {name: place for place, name in enumerate(names)}
    return _Shape(attrgetter(*names, "__class__"), places, define(soft, eq=False, repr=False))


def evolve(value: T, **changes: Any) -> T:
    """The same value, but for these fields; validators and converters run as at any birth."""
    kind = type(value)
    shape = _shape(kind)
    values = [*shape.read(value)]
    values.pop()
    places = shape.places
    for name in changes:
        values[places[name]] = changes[name]
    born: T = shape.soft(*values)
    born.__class__ = kind
    return born
