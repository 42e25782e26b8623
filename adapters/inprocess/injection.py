"""Which parameters want a value by their annotation: `Kind`, `Kind | None` or `Optional[Kind]`, also as text."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any


def wanting(function: Callable[..., object], kind: type) -> tuple[str, ...]:
    """The names of these parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()  # a builtin that says nothing of itself
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    return tuple(each.name for each in parameters if _is_of(_evaluated(each.annotation, scope, kind), kind))


def with_value(
    function: Callable[..., object],
    names: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    value: object,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with `value` for these parameters."""
    if not names:
        return args, dict(kwargs)
    bound = inspect.signature(function).bind_partial(*args, **kwargs)
    bound.arguments.update(dict.fromkeys(names, value))
    given = inspect.BoundArguments(bound.signature, _in_order(bound))
    return given.args, given.kwargs


def _in_order(bound: inspect.BoundArguments) -> Any:
    """`args` of BoundArguments stops at the first parameter that is missing; those after it are then passed by name."""
    return {name: bound.arguments[name] for name in bound.signature.parameters if name in bound.arguments}


def _evaluated(annotation: object, scope: Mapping[str, object], kind: type) -> object:
    """A postponed annotation names what its module imported, perhaps for the type checker alone: then the name must do."""
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
