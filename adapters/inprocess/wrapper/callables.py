"""The signature of a user's function, read before a call: its parameters, their annotations, and what kind of function it
is."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def misfit(function: Callable[..., object], arguments: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """Return why the function cannot be called with these arguments; None if it can, or if it has no signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*arguments, **named)
    except TypeError as reason:
        return f"{reason}; it is {getattr(function, '__name__', '')}{signature}"
    return None


def returns_at_once(function: Callable[..., object]) -> bool:
    """Return True if a call only makes a generator or a coroutine, and runs nothing yet."""
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(is_kind(each) for is_kind in kinds for each in (function, type(function).__call__))


def wanting(function: Callable[..., object], kind: type) -> tuple[str, ...]:
    """Return the names of the parameters annotated with `kind`, `kind | None` or `Optional[kind]`, also as text."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()  # a builtin without a signature
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    return tuple(each.name for each in parameters if _is_of(_evaluated(each.annotation, scope, kind), kind))


def with_value(
    function: Callable[..., object],
    names: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    value: object,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments, with `value` for these parameters."""
    if not names:
        return args, dict(kwargs)
    bound = inspect.signature(function).bind_partial(*args, **kwargs)
    bound.arguments.update(dict.fromkeys(names, value))
    given = inspect.BoundArguments(bound.signature, _in_order(bound))
    return given.args, given.kwargs


def _in_order(bound: inspect.BoundArguments) -> Any:
    """Return the arguments in order. BoundArguments passes those after the first missing one by name."""
    return {name: bound.arguments[name] for name in bound.signature.parameters if name in bound.arguments}


def _evaluated(annotation: object, scope: Mapping[str, object], kind: type) -> object:
    """Evaluate a postponed annotation. If its module imported the name for the type checker alone, compare the name."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {**vars(typing), **scope})
    except (NameError, AttributeError, SyntaxError, TypeError):
        named = {part.strip().split(".")[-1] for part in annotation.replace("Optional[", "").rstrip("]").split("|")}
        return kind if kind.__name__ in named else None


def _is_of(annotation: object, kind: type) -> bool:
    if annotation is kind:
        return True
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return kind in typing.get_args(annotation)
    return False
