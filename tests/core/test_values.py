"""Values are what attrs makes of them, with less compiled."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from attrs import field

from elastic.core.values import frozen


class Pair:
    left: int
    right: str = "r"


class Empty: ...


class Part:
    shown: int
    kept: str = field(default="secret", repr=False)
    beside: int = field(default=0, eq=False)


class Held:
    kind: object


class Hashed:
    value: list[int]

    def __hash__(self) -> int:
        return 7


class Own:
    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and self.value == other

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return "own"


def instances(decorate: Any) -> list[Any]:
    """The same instances, of classes that attrs or we made."""
    pair, empty, part, own, held, hashed = (decorate(each) for each in (Pair, Empty, Part, Own, Held, Hashed))
    longer = decorate(type("Longer", (pair,), {"__annotations__": {"third": "tuple[int, ...]"}, "third": ()}))
    return [
        *(pair(1), pair(1), pair(1, "x"), pair([])),
        *(empty(), empty(), part(1), part(1, beside=2), part(1, "other"), part(2)),
        *(held(int), held(int), held(str), hashed([1]), hashed([1]), hashed([2])),
        *(own(3), 3, own(4), longer(1), longer(1, third=(2,)), longer(1)),
    ]


def hashes(each: object) -> bool:
    try:
        hash(each)
    except TypeError:
        return False
    return True


def test_instances_are_equal_and_hash_and_show_themselves_as_those_of_attrs() -> None:
    theirs, ours = instances(attrs.frozen), instances(frozen)
    assert [[a == b for b in ours] for a in ours] == [[a == b for b in theirs] for a in theirs]
    assert [[a != b for b in ours] for a in ours] == [[a != b for b in theirs] for a in theirs]
    assert [repr(each) for each in ours] == [repr(each) for each in theirs]
    assert [hashes(each) for each in ours] == [hashes(each) for each in theirs]
    assert all(hash(a) == hash(b) for a in ours for b in ours if a == b and hashes(a) and hashes(b))


def test_instances_cannot_be_changed_and_have_no_dict() -> None:
    pair = instances(frozen)[0]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        pair.left = 2
    assert not hasattr(pair, "__dict__")


def test_a_value_that_holds_itself_is_shown() -> None:
    @frozen
    class Holder:
        held: list[object]

    holder = Holder([])
    holder.held.append(holder)
    assert repr(holder).endswith("Holder(held=[...])")


def test_a_field_with_a_key_is_compared_by_it_where_attrs_compiles_the_comparison() -> None:
    @frozen(eq=True)
    class Cased:
        text: str = field(eq=str.lower)

    assert (Cased("A") == Cased("a"), Cased("A") == Cased("b")) == (True, False)


def test_a_class_is_compared_and_shown_as_any_object_where_that_is_asked_for() -> None:
    @frozen(eq=False, repr=False)
    class Plain:
        value: int

    assert Plain(1) != Plain(1)
    assert "object at 0x" in repr(Plain(1))


def test_an_exception_is_equal_to_itself_alone_as_attrs_has_it() -> None:
    @frozen
    class Lost(Exception):
        what: str

    assert Lost("a") != Lost("a") and Lost("a").what == "a"


@pytest.mark.parametrize("own", [field(repr=str), field(eq=str)])
def test_a_field_that_is_shown_or_compared_in_a_way_of_its_own_is_refused(own: Any) -> None:
    with pytest.raises(TypeError, match="Odd: a field with a repr or a key of its own"):
        frozen(type("Odd", (), {"__annotations__": {"value": "int"}, "value": own}))
