"""The core decides and touches nothing: its syntax trees hold to the rules of purity.py, and the rules can say no."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from purity import ALLOWED, all_writes, complaints

CORE = Path(__file__).parents[1] / "core"


def found(source: str, file: str = "group/machine.py") -> list[str]:
    return [complaint.what for complaint in complaints({file: source})]


def test_the_core_is_pure() -> None:
    sources = {path.relative_to(CORE).as_posix(): path.read_text() for path in sorted(CORE.rglob("*.py"))}
    assert sources
    assert [str(complaint) for complaint in complaints(sources)] == []


@pytest.mark.parametrize(
    "module",
    ["time", "random", "os", "os.path", "socket", "threading", "logging", "torch", "attr", "elastic.core.world"],
)
def test_an_import_that_is_not_on_the_list_is_refused(module: str) -> None:
    assert found(f"import {module}") == [f"imports {module}"]
    assert found(f"from {module} import x") == [f"imports {module}"]
    assert found(f"def f():\n    import {module} as innocent") == [f"imports {module}"]


def test_only_the_front_of_the_core_imports_by_name() -> None:
    line = "from importlib import import_module"
    assert found(line, "__init__.py") == []
    assert found(line, "group/__init__.py") == ["imports importlib"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("world.py", "from ..adapters import clock"),
        ("group/machine.py", "from ... import adapters"),
        ("group/__init__.py", "from ...adapters.clock import now"),
    ],
)
def test_a_relative_import_that_leaves_the_core_is_refused(file: str, line: str) -> None:
    assert len(found(line, file)) == 1
    assert "outside the core" in found(line, file)[0]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("world.py", "from .ranks import assign"),
        ("group/machine.py", "from ..world import Node"),
        ("group/__init__.py", "from .machine import transition"),
        ("group/machine.py", "from collections.abc import Iterable"),
        ("group/machine.py", "from attrs import frozen"),
    ],
)
def test_what_the_core_shares_and_pure_helpers_may_be_imported(file: str, line: str) -> None:
    assert found(line, file) == []


@pytest.mark.parametrize(
    "line",
    [
        "print('x')",
        "open('f')",
        "input()",
        "exec('x')",
        "eval('x')",
        "__import__('os')",
        "breakpoint()",
        "handler = print",
        "hash('x')",
        "id(x)",
        "from math import *",
        "from .machine import *",
        "def f():\n    global x\n    x = 1",
    ],
)
def test_a_door_to_the_world_is_refused(line: str) -> None:
    assert len(found(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "object.__setattr__(state, 'legal', True)",
        "super().__setattr__('legal', True)",
        "write = object.__setattr__",
        "object.__delattr__(state, 'legal')",
        "setattr(state, 'legal', True)",
        "delattr(state, 'legal')",
        "state.__dict__['legal'] = True",
        "state.__dict__.update(legal=True)",
        "vars(state)['legal'] = True",
        "state.__class__ = Legal",
        "state.__class__, other = Legal, 1",
        "del state.__class__",
        "state.__setstate__({'legal': True})",
        "from functools import cached_property",
        "@functools.cached_property\ndef legal(self): ...",
    ],
)
def test_a_write_into_a_value_that_was_made_is_refused(line: str) -> None:
    assert len(found(line)) == 1


@pytest.mark.parametrize(
    "line", ["kind = state.__class__", "memo['legal'] = True", "legal = getattr(state, 'legal')", "process.held = held"]
)
def test_what_a_value_is_may_be_asked_and_a_memo_beside_it_written(line: str) -> None:
    assert found(line) == []


def test_a_write_past_the_freeze_is_allowed_in_its_own_file_only_and_only_where_there_is_one() -> None:
    line = "force_setattr(value, name, 1)"
    assert found(line, "values.py") == []
    assert found(line, "rendezvous/values.py") == ["names force_setattr"]
    for file, what in ALLOWED:
        assert what in {each for _, each in all_writes(ast.parse((CORE / file).read_text()))}


TAKEN = [
    "for x in {1, 2}: pass",
    "for x in set(y): pass",
    "for x in a.union(b): pass",
    "for x in a.keys() - b: pass",
    "for x in (a := frozenset(b)): pass",
    "for x in frozenset(a) if a else (): pass",
    "list({1, 2})",
    "tuple(frozenset(y))",
    "next(iter({1, 2}))",
    "enumerate({1, 2})",
    "', '.join({x for x in y})",
    "', '.join(str(x) for x in {1, 2})",
    "[x for x in set(y)]",
    "{x: 1 for x in set(y)}",
    "[*{1, 2}]",
    "f(*set(y))",
    "a, b = {1, 2}",
    "set(y).pop()",
    "f'{ {1, 2} }'",
    "str({1, 2})",
    "min({1, 2}, key=f)",
    "s = set(y)\nfor x in s: pass",
    "def f(s: frozenset[int]) -> None:\n    return [x for x in s]",
    "def f(s: set[int] | None) -> None:\n    return tuple(s or ())",
    "class A:\n    seats: frozenset[int]\ndef f(a: A) -> None:\n    for x in a.seats: pass",
    "class A:\n    @property\n    def seats(self) -> frozenset[int]: ...\ndef f(a: A) -> None:\n    tuple(a.seats)",
    "def seats(a: int) -> frozenset[int]: ...\ndef f() -> None:\n    for x in seats(1): pass",
    "Seats = frozenset[int]\ndef f(s: Seats) -> None:\n    for x in s: pass",
    "def outer(s: set[int]) -> None:\n    def inner() -> None:\n        for x in s: pass",
    "def f(s: set[int]) -> object:\n    return lambda: list(s)",
]


@pytest.mark.parametrize("source", TAKEN)
def test_an_order_taken_out_of_a_set_is_refused(source: str) -> None:
    assert any("takes an order" in what for what in found(source))


KEPT = [
    "for x in sorted({1, 2}): pass",
    "sorted(set(y))",
    "sorted(x + 1 for x in {1, 2})",
    "{x for x in set(y)}",
    "frozenset(x for x in {1, 2})",
    "{*{1, 2}, *set(y)}",
    "set(a).union(*b)",
    "len({1, 2}), any(x for x in {1, 2}), min({1, 2})",
    "x in {1, 2}",
    "(x,) = {1}",
    "for x in (1, 2): pass",
    "for x in {1: 2}: pass",
    "for x in a - b: pass",
    "settle({1, 2})",
    "def f(s: set[int]) -> None: ...\ndef g(s: list[int]) -> None:\n    for x in s: pass",
    "class A:\n    seats: set[int]\nclass B:\n    seats: list[int]\ndef f(b: B) -> None:\n    for x in b.seats: pass",
]


@pytest.mark.parametrize("source", KEPT)
def test_a_set_used_without_its_order_is_fine(source: str) -> None:
    assert found(source) == []


def test_a_field_declared_in_one_file_is_known_in_another() -> None:
    state = "class State:\n    seats: frozenset[int]"
    use = "def f(state: object) -> list[int]:\n    return list(state.seats)"
    assert [str(c) for c in complaints({"a.py": state, "b.py": use})] == [
        "core/b.py:2: takes an order out of a set: state.seats"
    ]
