"""The forms of lines. Lines of one form differ in their numbers alone, so names and missing fields are checked once. A form
is compiled once, to a function that makes a step of the numbers.

Each number is checked as that of any line: its type, and the bounds of its class. Where a form cannot be compiled, or its
numbers make no step, the line is read as any other, which tells what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from ..values import define, frozen
from .plain import Hole, Numbers, maker, registers
from .steps import Step

Shape: TypeAlias = tuple[bytes, ...]
"""A line without its numbers: what stands before, between and behind them. Empty for a line that is too long to be kept."""
_HOLE = "hole"


@define(eq=False)
class Form:
    """The lines of one shape, and the function that reads them."""

    shape: Shape
    make: Callable[[Numbers], Step] | None = None
    is_compiled: bool = False
    """`make` is known: None if there is none."""

    def step(self, numbers: Numbers) -> Step | None:
        """Return the step of the line with these numbers; None if the line must be read for that."""
        if not self.is_compiled:
            self.is_compiled, self.make = True, _compiled(self.shape)
        try:
            return self.make(numbers) if self.make else None
        except (ValueError, RecursionError):
            return None


@frozen(eq=False)
class Repeated:
    """A line that repeats an earlier one but for its numbers: it has the form of that one."""

    form: Form
    numbers: Numbers
    """With the number of lines up to that one before them."""
    packed: bytes
    """The line as it is written: these numbers, in brackets."""

    @property
    def step(self) -> Step | None:
        """The step of the line; None if it must be read for that."""
        return self.form.step(self.numbers)

    @property
    def whole(self) -> bytes:
        """The line that was packed."""
        texts = self.packed[1:-2].split(b",")
        texts[0] = b""
        return b"".join(part for pair in zip(texts, self.form.shape, strict=True) for part in pair)


def _compiled(shape: Shape) -> Callable[[Numbers], Step] | None:
    """Return what makes the step of a line of this shape; None for one that holds a register, or is a header."""
    holes = (b'{"%b":%d}' % (_HOLE.encode(), index) for index in range(1, len(shape)))
    try:
        data = _holed(
            msgspec.json.decode(b"".join(part for pair in zip(shape, (*holes, b""), strict=True) for part in pair))
        )
        return None if any(registers(data)) else maker(data, Step)
    except (ValueError, RecursionError):
        return None


def _holed(data: Any) -> Any:
    """Return the data of a line with its holes. An object with a number is one: all numbers were cut out."""
    if isinstance(data, list):
        return [_holed(each) for each in data]
    if not isinstance(data, dict):
        return data
    index = data.get(_HOLE)
    return Hole(index) if type(index) is int else {name: _holed(each) for name, each in data.items()}
