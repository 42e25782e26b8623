"""What a launch from a program is called with. A mistake in it is a ValueError in one line, before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ...adapters.inprocess.callables import misfit
from ...adapters.workers.function_call import name_of
from .settings import LaunchSettings


def check_settings(given: object) -> None:
    if not isinstance(given, LaunchSettings):
        raise ValueError(f"{given!r}: no settings; write elastic.launch(elastic.LaunchSettings(...))(function, ...)")


def check_function(function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """That it can be called so, else every worker would fail at it."""
    if why := misfit(function, arguments, named):
        raise ValueError(f"{name_of(function)}: {why}")


def check_script(entrypoint: object, arguments: Sequence[object], named: Mapping[str, object]) -> str:
    """Its name."""
    if not isinstance(entrypoint, str | os.PathLike):
        raise ValueError(f"{entrypoint!r}: neither a function nor the name of a script")
    name = os.fspath(entrypoint)
    fields = [field.name for field in attrs.fields(LaunchSettings)]
    for key, value in named.items():
        where = f"LaunchSettings({key}={value!r})" if key in fields else f"'--{key.replace('_', '-')}', {str(value)!r}"
        raise ValueError(f"{key}={value!r}: a script has no named arguments; write {where}")
    for each in arguments:
        if not isinstance(each, str):
            raise ValueError(f"{each!r}: a script's arguments are text; write {str(each)!r}")
    return name
