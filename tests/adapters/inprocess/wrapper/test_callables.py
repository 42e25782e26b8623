"""Which parameters are given the call, and where in the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

import pytest

from elastic.adapters.inprocess.wrapper.callables import wanting, with_value

if TYPE_CHECKING:
    from elsewhere import Call  # type: ignore[import-not-found]


class Wanted:
    pass


def plain(call: Wanted, lr: float = 0.1) -> None: ...
def optional(lr: float, call: Optional[Wanted] = None) -> None: ...  # noqa: UP045 - as old programs spell it
def either(lr: float, *, call: Wanted | None = None) -> None: ...
def in_the_middle(a: int, call: Wanted, b: int = 2) -> None: ...
def other(call: str, lr: Any = None) -> None: ...
def unannotated(call, lr) -> None: ...  # type: ignore[no-untyped-def]
def for_the_checker_alone(lr: float, call: Optional[Call] = None) -> None: ...  # noqa: UP045


def evaluated() -> Callable[..., object]:
    """Annotations that are no text."""
    namespace: dict[str, Any] = {"Wanted": Wanted, "Optional": Optional}
    exec("def function(lr, call: Optional[Wanted] = None): ...", namespace)
    return namespace["function"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (plain, ("call",)),
        (optional, ("call",)),
        (either, ("call",)),
        (in_the_middle, ("call",)),
        (evaluated(), ("call",)),
        (other, ()),
        (unannotated, ()),
        (print, ()),
    ],
)
def test_a_parameter_is_known_by_its_annotation(function: Callable[..., object], names: tuple[str, ...]) -> None:
    assert wanting(function, Wanted) == names


def test_an_annotation_for_the_type_checker_alone_is_known_by_its_last_word() -> None:
    kind = type("Call", (), {})
    assert wanting(for_the_checker_alone, kind) == ("call",)
    assert wanting(for_the_checker_alone, Wanted) == ()


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (plain, (), {}, (("X",), {})),
        (plain, (), {"lr": 3}, (("X", 3), {})),
        (optional, (3,), {}, ((3, "X"), {})),
        (optional, (3, None), {}, ((3, "X"), {})),
        (optional, (), {"lr": 3}, ((3, "X"), {})),
        (either, (3,), {}, ((3,), {"call": "X"})),
        (in_the_middle, (1,), {}, ((1, "X"), {})),
        (in_the_middle, (), {"b": 5, "a": 1}, ((1, "X", 5), {})),
        (other, ("text",), {"lr": 1}, (("text",), {"lr": 1})),
    ],
)
def test_its_value_takes_its_place_among_the_arguments(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any], expected: object
) -> None:
    assert with_value(function, wanting(function, Wanted), args, kwargs, "X") == expected


def test_what_comes_after_an_argument_that_is_missing_is_passed_by_name() -> None:
    args, kwargs = with_value(in_the_middle, ("call",), (), {}, Wanted())
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        in_the_middle(*args, **kwargs)
