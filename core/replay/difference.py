"""Two values that should be the same, for people: the first place in which they are not, and what stands there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from ..rendezvous.codec import encode
from .lines import registers
from .plain import plain


class Differs(Exception):
    """What the trace says and what the core says are not the same."""

    def __init__(self, what: str, traced: str, core: str) -> None:
        super().__init__(f"{what}: traced {traced}, the core says {core}")
        self.what = what
        self.traced = traced
        self.core = core


def same(what: str, traced: object, core: object, kind: Any) -> None:
    """Raises Differs, with the first place in which two values do."""
    if traced != core and (found := _first_difference("", _open(traced, kind), _open(core, kind))):
        place, one, other = found
        raise Differs(f"{what}{f' ({place[1:]})' if place else ''}", json.dumps(one), json.dumps(other))


def spelled(value: object, kind: Any) -> str:
    return json.dumps(_open(value, kind))


def _open(value: object, kind: Any) -> Any:
    """As JSON has it, the register too."""
    data = plain(value, kind)
    for place, key in registers(data) if isinstance(data, dict) else ():
        place[key] = msgspec.Raw(encode(place[key]))
    return msgspec.json.decode(msgspec.json.encode(data))


def _first_difference(place: str, one: Any, other: Any) -> tuple[str, Any, Any] | None:
    """Where, and what stands there; None if all is the same."""
    if one == other:
        return None
    inner: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        inner = ((f"{place}.{key}", one[key], other[key]) for key in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        inner = ((f"{place}.{index}", *pair) for index, pair in enumerate(zip(one, other, strict=True)))
    return next((found for each in inner if (found := _first_difference(*each))), (place, one, other))
