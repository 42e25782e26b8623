"""A property that is computed once for each value, and remembered beside it: the value itself is never written to.

A class with such properties gives each value a memo of its own, at birth: `memo: Memo = beside()`. The memo is no part of
the value: it is neither compared nor shown, and `evolve` does not take it over. (Computing all of them at birth made a
simulation 12 % slower: most states are only steps towards the next.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from .values import field

T = TypeVar("T")
C = TypeVar("C", covariant=True)

Memo: TypeAlias = dict[str, Any]
"""The known properties of a value, by name."""


def beside() -> Any:
    """Return the field that holds a value's memo."""
    return field(factory=dict, init=False, eq=False, repr=False)


class Derived(Protocol[C]):
    def __get__(self, instance: Any, owner: object) -> C: ...


def derived(make: Callable[[Any], T]) -> Derived[T]:
    """Return a property of a class that has a `memo`. `make` computes it when it is first asked for."""
    name = make.__name__

    def known(value: Any) -> T:
        memo = value.memo
        if name not in memo:
            memo[name] = make(value)
        return memo[name]  # type: ignore[no-any-return]

    return property(known, doc=make.__doc__)  # type: ignore[return-value]
