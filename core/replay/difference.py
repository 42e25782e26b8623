"""The first place in which two values differ that should be equal, in words for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from ..rendezvous.codec import encode_plain
from ..trace.plain import plain, registers


class Differs(Exception):
    """The trace and the core disagree."""

    def __init__(self, what: str, traced: str, core: str) -> None:
        super().__init__(f"{what}: traced {traced}, the core says {core}")
        self.what = what
        self.traced = traced
        self.core = core


def same(what: str, traced: object, core: object, kind: Any) -> None:
    """Raise Differs, with the first place in which the two values differ."""
    if traced != core and (found := _first_difference("", _open(traced, kind), _open(core, kind))):
        place, one, other = found
        raise Differs(f"{what}{f' ({place[1:]})' if place else ''}", json.dumps(one), json.dumps(other))


def spelled(value: object, kind: Any) -> str:
    return json.dumps(_open(value, kind))


def _open(value: object, kind: Any) -> Any:
    """Return the value as JSON has it, with the register opened."""
    data = plain(value, kind)
    for place, key in registers(data) if isinstance(data, dict) else ():
        place[key] = msgspec.Raw(encode_plain(place[key]))
    return msgspec.json.decode(msgspec.json.encode(data))


def _first_difference(place: str, one: Any, other: Any) -> tuple[str, Any, Any] | None:
    """Return the first place that differs and both values there; None if all is equal."""
    if one == other:
        return None
    inner: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        inner = ((f"{place}.{key}", one[key], other[key]) for key in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        inner = ((f"{place}.{index}", *pair) for index, pair in enumerate(zip(one, other, strict=True)))
    return next((found for each in inner if (found := _first_difference(*each))), (place, one, other))
