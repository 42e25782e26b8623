"""Values: `frozen` builds them as attrs' own does, and compiles less, so that an agent starts sooner.

attrs compiles source for each class: `__init__`, `__eq__`, `__hash__`, `__repr__`. Of the some 300 classes that a launch
imports, the last three took a third of the time of all imports. One function for all classes does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from attrs import frozen as frozen  # noqa: TID251 - so a type checker knows what it makes
else:

    def frozen(cls: type[Any] | None = None, /, *, eq: bool | None = None, repr: bool = True, **options: Any) -> Any:
        """Build an immutable class with slots, as `attrs.frozen` does with these options. Its instances are equal, and
        hash, by the fields that take part in that, and show themselves with the fields that are shown.

        With `eq` True attrs compiles the comparison, which a field with a key of its own for it needs.
        """

        def built(given: type[Any]) -> type[Any]:
            own = given.__dict__
            if issubclass(given, BaseException):
                return attrs.frozen(given, **options)  # noqa: TID251
            made = attrs.frozen(given, eq=bool(eq), repr=False, **options)  # noqa: TID251
            if any(callable(each.repr) or (each.eq_key and not eq) for each in attrs.fields(made)):
                raise TypeError(f"{given.__qualname__}: a field with a repr or a key of its own needs attrs.frozen")
            if repr and "__repr__" not in own:
                _shown_by_fields(made)
            if eq is None and "__eq__" not in own:
                _compared_by_fields(made, hashes="__hash__" not in own)
            return made

        return built if cls is None else built(cls)


def _shown_by_fields(cls: type[Any]) -> None:
    names = tuple(each.name for each in attrs.fields(cls) if each.repr)

    def __repr__(self: object) -> str:
        title = self.__class__.__qualname__.rpartition(">.")[2]
        return f"{title}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    cls.__repr__ = recursive_repr()(__repr__)  # type: ignore[assignment]


def _compared_by_fields(cls: type[Any], hashes: bool) -> None:
    names = [each.name for each in attrs.fields(cls) if each.eq]
    values: Callable[[object], tuple[object, ...]] = (
        attrgetter(*names) if len(names) > 1 else lambda self: tuple([getattr(self, name) for name in names])
    )

    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: object) -> int:
        return values(self).__hash__()

    cls.__eq__ = __eq__  # type: ignore[assignment]
    if hashes:
        cls.__hash__ = __hash__  # type: ignore[assignment]
