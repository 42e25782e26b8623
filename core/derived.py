"""A property that is worked out once for each value: `functools.cached_property` without a lock, which would guard nothing.

The class must be open (`slots=False`). To one with slots attrs would give a `__getattr__`, and with that every look at any
of its fields is several times as slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class derived(Generic[T]):
    """Python asks this only as long as the value's own dictionary has nothing of that name."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make, self.name = make, make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, instance: Any, owner: object) -> T:
        made = instance.__dict__[self.name] = self.make(instance)
        return made
