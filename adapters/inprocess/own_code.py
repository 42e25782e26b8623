"""Which code is the wrapper's own: a raise into the user's code never lands in it, though the user's code called it.

A context manager that the user's code enters is a class with own methods, not a generator: `contextlib` has frames too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Final, ParamSpec, TypeVar, cast

OWN: Final[set[int]] = set()
"""The ids of code objects, which live as long as the program: to hash the code itself takes a microsecond."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


def own(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Mark a function of the wrapper that may run while user code is under way."""
    OWN.add(id(cast(FunctionType, function).__code__))
    return function
