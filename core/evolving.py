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
    """All its fields, and the first once more: `attrgetter` of one name would give no tuple."""
    places: Mapping[str, int]
    soft: Callable[..., Any]


@cache
def _shape(kind: type[AttrsInstance]) -> _Shape:
    names = [each.name for each in fields(kind) if each.init]
    return _Shape(attrgetter(*names, names[0]), {name: place for place, name in enumerate(names)}, soft(kind))


def soft(kind: type[T]) -> type[T]:
    """A class of the same layout that is not frozen: its birth is twice as fast. What is never frozen afterwards, but seen
    as its own kind, is kept from change by the type checker alone."""
    thawed = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return define(type(kind.__name__, (kind,), thawed), eq=False, repr=False)


def evolve(value: T, **changes: Any) -> T:
    """The same value, but for these fields; validators and converters run as at any birth."""
    kind = type(value)
    shape = _shape(kind)
    values = [*shape.read(value)]
    values.pop()
    places = shape.places
    for name, new in changes.items():
        values[places[name]] = new
    born: T = shape.soft(*values)
    born.__class__ = kind
    return born
