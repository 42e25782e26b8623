"""What a user's function takes, found out before it is called: no worker can mend a call that does not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def misfit(function: Callable[..., object], arguments: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """Why it cannot be called with these; None if it can, or if it says nothing of itself."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*arguments, **named)
    except TypeError as reason:
        return f"{reason}; it is {getattr(function, '__name__', '')}{signature}"
    return None


def returns_at_once(function: object) -> bool:
    """A call of it makes a generator or a coroutine, and runs nothing."""
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(is_kind(function) for is_kind in kinds)
