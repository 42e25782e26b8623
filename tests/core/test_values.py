"""Values are as those that attrs makes of the same class."""

from __future__ import annotations

import ast
import copy
import pickle
import subprocess
import sys
import threading
from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from attrs import field

from elastic.core import values
from elastic.core.values import evolve, frozen
from elastic.core.world import Endpoint

ENDPOINT = Endpoint("localhost", 1)


class Pair:
    left: int
    right: str = "r"


class Empty: ...


class Part:
    shown: int
    kept: str = field(default="secret", repr=False)
    beside: int = field(default=0, eq=False)


class Styled:
    value: int = field(repr=hex, eq=abs)


class Checked:
    """Has all that takes place when a value is born, in its order."""

    first: int = field(converter=int, validator=attrs.validators.ge(0))
    twice: Any = field(init=False, repr=False)
    memo: dict[str, int] = field(factory=dict, init=False, eq=False, repr=False)
    second: int = attrs.Factory(lambda self: self.first + 1, takes_self=True)
    third: Any = field(default=0)

    @twice.default
    def _twice(self) -> int:
        return 2 * self.first

    @third.validator
    def _below(self, attribute: attrs.Attribute[int], value: int) -> None:
        if value > self.second:
            raise ValueError(f"{attribute.name}: at most {self.second}, not {value}")

    def __attrs_post_init__(self) -> None:
        self.memo["born"] = self.third


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
    pair, empty, part, own = (decorate(each) for each in (Pair, Empty, Part, Own))
    held, hashed, styled = (decorate(each) for each in (Held, Hashed, Styled))
    return [
        *(pair(1), pair(1), pair(1, "x"), pair([])),
        *(empty(), empty(), part(1), part(1, beside=2), part(1, "other"), part(2)),
        *(held(int), held(int), held(str), hashed([1]), hashed([1]), hashed([2])),
        *(styled(10), styled(-10), styled(11)),
        *(own(3), 3, own(4)),
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
    with pytest.raises(AttributeError, match="immutable"):
        pair.left = 2
    assert not hasattr(pair, "__dict__")


def test_a_value_that_extends_another_one_is_refused() -> None:
    with pytest.raises(TypeError, match="Longer: a value cannot extend another one"):
        frozen(type("Longer", (frozen(Pair),), {"__annotations__": {"third": "int"}, "third": 3}))


def test_a_value_that_holds_itself_is_shown() -> None:
    @frozen
    class Holder:
        held: list[object]

    holder = Holder([])
    holder.held.append(holder)
    assert repr(holder).endswith("Holder(held=[...])")


@pytest.mark.parametrize("decorate", [attrs.frozen, frozen])
def test_a_birth_converts_fills_and_validates_as_that_of_attrs(decorate: Any) -> None:
    checked = decorate(Checked)
    born = checked("3", third=4)
    assert (born.first, born.twice, born.second, born.third, born.memo) == (3, 6, 4, 4, {"born": 4})
    assert (checked(3, 9).second, checked(3, 9, 9).third) == (9, 9)
    assert checked(3) == checked("3") != checked(3, 5)
    with pytest.raises(ValueError, match="first"):
        checked(-1)
    with pytest.raises(ValueError, match="third: at most 2, not 3"):
        checked(1, third=3)


def test_attrs_knows_the_fields_of_a_value() -> None:
    decorate: Any = frozen
    theirs: Any = attrs.frozen
    assert attrs.fields(decorate(Checked)) == attrs.fields(theirs(Checked))
    assert attrs.asdict(decorate(Pair)(1)) == {"left": 1, "right": "r"}


def test_a_changed_value_is_born_anew_and_of_its_own_class() -> None:
    decorate: Any = frozen
    checked = decorate(Checked)
    before = checked(3)
    after = evolve(before, first=5, second=9)
    assert (type(after), after.twice, after.second) == (checked, 10, 9)
    assert after.memo is not before.memo
    with pytest.raises(ValueError, match="first"):
        evolve(before, first=-1)
    with pytest.raises(TypeError, match="fourth"):
        evolve(before, fourth=1)


def test_values_are_copied_and_pickled() -> None:
    assert pickle.loads(pickle.dumps(ENDPOINT)) == copy.deepcopy(ENDPOINT) == ENDPOINT


def test_a_class_is_compared_and_shown_as_any_object_where_that_is_asked_for() -> None:
    @frozen(eq=False, repr=False)
    class Plain:
        value: int

    assert Plain(1) != Plain(1)
    assert "object at 0x" in repr(Plain(1))


def as_list(values: Iterable[str]) -> list[str]:
    return list(values)


def declared(by: Any) -> Any:
    """Return a class that is written with the fields of attrs, or with ours."""

    class Declared:
        first: int = by.field(default=1, repr=False, metadata={"help": "…"})
        seen: int = by.field(default=0, eq=False)
        size: int = by.field(default=2, eq=abs, repr=hex)
        names: list[str] = by.field(factory=list, converter=list)
        tags: list[str] = by.field(factory=list, converter=as_list)
        fixed: int = by.field(default=3, init=False)
        double: int = by.field(init=False)

        @double.default  # type: ignore[attr-defined]
        def _double(self) -> int:
            return 2 * self.first

        @first.validator  # type: ignore[attr-defined]
        def _positive(self, attribute: attrs.Attribute[int], value: int) -> None:
            if value < 1:
                raise ValueError(f"{attribute.name}: at least 1, not {value}")

    return Declared


@pytest.mark.parametrize("by", [attrs, values])
def test_a_field_is_that_of_attrs(by: Any) -> None:
    theirs, ours = attrs.frozen(declared(attrs)), frozen(declared(by))
    bare = {"default": None, "validator": None, "converter": None}
    as_told = [[each.evolve(**bare) for each in attrs.fields(kind)] for kind in (ours, theirs)]
    assert as_told[0] == as_told[1] and attrs.fields(ours) is attrs.fields(ours)
    assert [(each.name, each.init) for each in values.fields(ours)] == [
        (each.name, each.init) for each in attrs.fields(theirs)
    ]
    assert [each.default for each in values.fields(ours)][:3] == [1, 0, 2]
    assert values.fields(theirs)[0].default == 1
    assert [each.default for each in values.fields(frozen(Pair))][1] == "r"  # type: ignore[arg-type]
    assert values.fields(ours)[0].metadata == {"help": "…"}
    assert repr(ours(3, names="ab")) == repr(theirs(3, names="ab"))
    assert (ours(size=-2) == ours(), ours(seen=1) == ours(), ours(2) == ours()) == (True, True, False)
    assert evolve(ours(), first=4).double == 8
    with pytest.raises(ValueError, match="first: at least 1, not 0"):
        ours(0)


def test_a_field_has_one_validator() -> None:
    checked: Any = values.field(validator=lambda value, attribute, given: None)
    with pytest.raises(TypeError, match="has a validator already"):
        checked.validator(lambda value, attribute, given: None)


def test_a_class_whose_fields_may_change_is_as_attrs_has_it() -> None:
    @values.define(eq=False)
    class Counted:
        count: int = 0
        seen: list[int] = values.field(factory=list)

    @values.define
    class Compared:
        count: int = 0

    one, other = Counted(), Counted()
    one.count += 1
    one.seen.append(one.count)
    assert (one.count, one.seen, other.count, other.seen) == (1, [1], 0, [])
    assert one != Counted(1, [1]) and len({one, other}) == 2
    assert Compared(1) == Compared(1) and not hashes(Compared(1))
    assert not hasattr(one, "__dict__")


def test_a_class_that_attrs_alone_can_make_is_refused() -> None:
    class Hidden:
        _count: int = 0

    with pytest.raises(TypeError, match=r"Hidden: attrs\.define can make this class"):
        values.define(Hidden)


def test_a_launch_imports_neither_attrs_nor_typing_extensions() -> None:
    code = """
import sys
from elastic.cli.main import _load
sys.argv = ["elastic", "launch"]
_load()
import elastic.core.work
print([each for each in ("attr", "typing_extensions") if each in sys.modules])
import typing_extensions
"""
    assert subprocess.check_output([sys.executable, "-c", code], timeout=120, text=True) == "[]\n"


class Bounded:
    x: Any = values.field(validator=print)


class Made:
    x: int = values.field(init=False)


class Abstract(ABC):
    x: int


class Lost(Exception):
    what: str


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: values.define(Bounded), "Bounded: attrs.define can make this class"),
        (lambda: frozen(Abstract), "Abstract: attrs.frozen can make this class"),
        (lambda: frozen(Lost), "Lost: attrs.frozen can make this class"),
        (lambda: frozen(Made), "Made: x has no default, and is not given either"),
        (lambda: values.field(validator=[print]), "one function as its validator"),
        (lambda: values.field(default=attrs.Factory(list)), "what makes its default as its factory"),
    ],
)
def test_what_attrs_would_do_and_a_struct_cannot_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()


def test_threads_may_ask_attrs_of_a_class_at_once() -> None:
    """attrs changes the class that it builds from, and each thread may be the first to ask."""
    kinds: list[Any] = [frozen(declared(values)) for _ in range(200)]
    begins, found, switched = threading.Barrier(4), list[list[str]](), sys.getswitchinterval()

    def ask() -> None:
        begins.wait()
        found.append([attrs.evolve(kind(), first=2).names for kind in kinds])

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switched)
    assert [len(each) for each in found] == [len(kinds)] * 4 and not any(names for each in found for names in each)


def test_attrs_parses_no_text_for_a_converter_written_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Python 3.11 two threads that parse at once raise SystemError, once in some thousand runs of the test above."""
    kind: Any = frozen(declared(values))
    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", lambda *given, **options: pytest.fail("text was parsed"))
        found = attrs.fields(kind)
    converted = {each.name: each.converter("ab") for each in found if each.converter}
    assert converted == {"names": ["a", "b"], "tags": ["a", "b"]}
    assert found.tags.converter is as_list
