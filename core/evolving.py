"""A frozen value with some of its fields changed: `attrs.evolve` for classes whose fields are all given at birth.

The core makes a new value at every step, and attrs spends most of its time on asking the class for its fields each time, and
on setting them past the freeze. So the class is asked once. A value is made as one of a twin class that is not frozen, and
gets its own class when it is complete, before anybody else sees it. `benchmarks/evolving.py` shows what that buys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from attrs import AttrsInstance, define, fields

T = TypeVar("T", bound=AttrsInstance)

_Shape: TypeAlias = tuple[Callable[[Any], tuple[Any, ...]], Mapping[str, int], Callable[..., Any]]
"""A function that reads all fields of a value, the place of each field by its name, and the twin class."""
_shapes: dict[type[AttrsInstance], _Shape] = {}


def _shape(kind: type[AttrsInstance]) -> _Shape:
    names = [each.name for each in fields(kind) if each.init]
    read = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    shape = _shapes[kind] = read, {name: place for place, name in enumerate(names)}, _twin(kind)
    return shape


def _twin(kind: type[T]) -> type[T]:
    """Return a class of the same layout that is not frozen: the birth of its values takes half the time."""
    thawed = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return define(type(kind.__name__, (kind,), thawed), eq=False, repr=False)


def maker(kind: type[T]) -> Callable[..., T]:
    """Return a function that makes a value of this class out of its fields, in their order, faster than the class itself."""
    twin = _twin(kind)

    def made(*values: Any) -> T:
        born = twin(*values)
        born.__class__ = kind
        return born

    return made


def evolve(value: T, **changes: Any) -> T:
    """Return the same value but for these fields. Validators and converters run as at any birth."""
    kind = type(value)
    read, places, twin = _shapes.get(kind) or _shape(kind)
    values = [*read(value)]
    for name in changes:
        values[places[name]] = changes[name]
    born: T = twin(*values)
    born.__class__ = kind
    return born
