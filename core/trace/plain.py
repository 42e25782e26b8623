"""Values of the core as JSON, and back: the content of a trace's lines.

One rule serves each kind of type, so no value needs an encoding of its own. A frozen class or a named tuple is an object of
its fields; empty fields are left out. A member of a union also names its class (`is`). An enum is its value, a node is
`slot#incarnation`, a handler is its name. The register keeps the encoding that it has in a store. Input is checked against
the types: nothing is guessed, and an unknown field is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from ..rendezvous import RendezvousState, close, codec, done, drain, end, join, leave, linger, reserve, watch
from ..rendezvous.context import Handler
from ..values import fields as attributes
from ..values import frozen
from ..world import Generation, Member, Node, World, WorldId, world_of

IS = "is"
"""The key that says which member of a union an object is."""
HANDLERS: Mapping[str, Handler] = {
    handler.__name__: handler for handler in (join, watch, end, done, reserve, leave, close, drain, linger)
}


Numbers: TypeAlias = Sequence[float]
Maker: TypeAlias = Callable[[Numbers], Any]
"""Makes a value of the numbers for its holes. Raises ValueError."""


@frozen
class Hole:
    """The place of a number in JSON."""

    index: int


@frozen
class Spelling:
    """How the values of one type are written and read. Reading raises ValueError."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    fill: Callable[[Any], Maker] | None = None
    """Compiles JSON with holes to a maker of values. None: the holes are filled, and `read` reads the whole."""


def plain(value: object, kind: object) -> Any:
    """Return this value of this type as JSON has it."""
    return _spelling(kind).write(value)


def made(data: object, kind: Any) -> Any:
    """Return the value of this type that JSON holds. Raises ValueError, with the reason."""
    return _spelling(kind).read(data)


def registers(data: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the places of registers in a line, or in an ask, in the order of references: what was shown, what is restored,
    what is written."""
    ask = data.get("ask", data)
    edit = ask.get("edit") if isinstance(ask, dict) else None
    places = ((data.get("fed"), "state"), (edit, "held"), (ask, "state"))
    return ((each, key) for each, key in places if isinstance(each, dict) and each.get(key) is not None)


def maker(data: Any, kind: Any) -> Maker:
    """Return what makes the values of this type that JSON with holes holds. Raises ValueError if all would be refused."""
    return _maker(_spelling(kind), data)


def _maker(how: Spelling, data: Any) -> Maker:
    read = how.read
    if type(data) is Hole:
        index = data.index
        return lambda numbers: read(numbers[index])
    if not _has_hole(data):
        value = read(data)
        return lambda numbers: value
    return how.fill(data) if how.fill else lambda numbers: read(_filled(data, numbers))


def _has_hole(data: Any) -> bool:
    if isinstance(data, dict):
        return any(map(_has_hole, data.values()))
    return any(map(_has_hole, data)) if isinstance(data, list) else type(data) is Hole


def _filled(data: Any, numbers: Numbers) -> Any:
    """Return this JSON with the numbers in its holes."""
    if isinstance(data, dict):
        return {name: _filled(each, numbers) for name, each in data.items()}
    if isinstance(data, list):
        return [_filled(each, numbers) for each in data]
    return numbers[data.index] if type(data) is Hole else data


@cache
def _spelling(kind: Any) -> Spelling:
    arguments = get_args(kind)
    if kind == Handler:
        return Spelling(lambda handler: handler.__name__, _one_of(HANDLERS, "operation"))
    match get_origin(kind) or kind:
        case origin if origin in (Union, UnionType):
            return _of_union(arguments)
        case origin if origin is Literal:
            return Spelling(_as_it_is, _one_of(dict(zip(arguments, arguments, strict=True)), "one of these"))
        case origin if origin is tuple and arguments[-1] is ...:
            each = _spelling(arguments[0])
            return Spelling(
                lambda values: [each.write(value) for value in values], _read_all(each, tuple), _fill_all(each)
            )
        case origin if origin is tuple:
            return _of_tuple([_spelling(argument) for argument in arguments])
        case origin if origin is frozenset:
            each = _spelling(arguments[0])
            return Spelling(lambda values: [each.write(value) for value in sorted(values)], _read_all(each, frozenset))
        case origin if origin is Mapping:
            return _of_mapping(*map(_spelling, arguments))
        case _:
            return _of_class(kind)


def _of_class(kind: Any) -> Spelling:
    if kind in SIMPLE:
        return SIMPLE[kind]
    if issubclass(kind, Enum):
        return Spelling(lambda member: member.value, _one_of({member.value: member for member in kind}, word(kind)))
    return _of_fields(kind)


def _of_fields(kind: Any) -> Spelling:
    hints = get_type_hints(kind)
    names = kind._fields if issubclass(kind, tuple) else [field.name for field in attributes(kind) if field.init]
    fields = {name: _spelling(hints[name]) for name in names}
    needed = [name for name in fields if NoneType not in get_args(hints[name]) and hints[name] is not object]

    def write(value: Any) -> Any:
        told = ((name, how.write(getattr(value, name))) for name, how in fields.items())
        return {name: data for name, data in told if data is not None}

    def known(data: Any) -> Any:
        given = _is(dict, "an object")(data)
        if unknown := [name for name in given if name not in fields]:
            raise ValueError(f"{word(kind)}: {unknown[0]!r} is not known")
        if missing := [name for name in needed if name not in given]:
            raise ValueError(f"{word(kind)}: {missing[0]!r} is missing")
        return given

    def read(data: Any) -> Any:
        given = known(data)
        return kind(**{name: how.read(given.get(name)) for name, how in fields.items()})

    def fill(data: Any) -> Maker:
        given = known(data)
        whole = [None if _has_hole(given.get(name)) else how.read(given.get(name)) for name, how in fields.items()]
        makers = [
            (place, _maker(how, given[name]))
            for place, (name, how) in enumerate(fields.items())
            if _has_hole(given.get(name))
        ]

        def make(numbers: Numbers) -> Any:
            values = whole.copy()
            for place, made in makers:
                values[place] = made(numbers)
            return kind(*values)

        return make

    return Spelling(write, read, fill)


def word(kind: type) -> str:
    """Return a class name as words: `MarkDone` is `mark done`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).strip()


def _of_union(arguments: tuple[Any, ...]) -> Spelling:
    """Return the spelling of an optional type, or of a union of frozen classes."""
    kinds = [kind for kind in arguments if kind is not NoneType]
    some = _spelling(kinds[0]) if len(kinds) == 1 else _of_several({word(kind): kind for kind in kinds})
    if NoneType not in arguments:
        return some
    return Spelling(
        lambda value: None if value is None else some.write(value),
        lambda data: None if data is None else some.read(data),
        some.fill,
    )


def _of_several(kinds: Mapping[str, Any]) -> Spelling:
    which = _one_of(kinds, f"one of {', '.join(kinds)}")

    def member(data: Any) -> tuple[Any, Any]:
        given = _is(dict, "an object")(data)
        return {name: own for name, own in given.items() if name != IS}, which(given.get(IS))

    return Spelling(
        lambda value: {IS: word(type(value)), **plain(value, type(value))},
        lambda data: made(*member(data)),
        lambda data: maker(*member(data)),
    )


def _of_tuple(each: list[Spelling]) -> Spelling:
    def read(data: Any) -> Any:
        if len(_is(list, "a list")(data)) != len(each):
            raise ValueError(f"a list of {len(each)}, not of {len(data)}")
        return tuple(how.read(value) for how, value in zip(each, data, strict=True))

    return Spelling(lambda values: [how.write(value) for how, value in zip(each, values, strict=True)], read)


def _of_mapping(key: Spelling, value: Spelling) -> Spelling:
    def read(data: Any) -> Any:
        return {key.read(name): value.read(own) for name, own in _is(dict, "an object")(data).items()}

    def fill(data: Any) -> Maker:
        makers = [(key.read(name), _maker(value, own)) for name, own in _is(dict, "an object")(data).items()]
        return lambda numbers: {name: make(numbers) for name, make in makers}

    return Spelling(lambda values: {key.write(name): value.write(own) for name, own in values.items()}, read, fill)


def _read_all(each: Spelling, into: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda data: into([each.read(value) for value in _is(list, "a list")(data)])


def _fill_all(each: Spelling) -> Callable[[Any], Maker]:
    def fill(data: Any) -> Maker:
        makers = [_maker(each, value) for value in _is(list, "a list")(data)]
        return lambda numbers: tuple([make(numbers) for make in makers])

    return fill


def _one_of(known: Mapping[Any, Any], what: str) -> Callable[[Any], Any]:
    def read(data: Any) -> Any:
        if not isinstance(data, str) or data not in known:
            raise ValueError(f"{data!r} is not known ({what})")
        return known[data]

    return read


def _is(kind: type, what: str) -> Callable[[Any], Any]:
    def read(data: Any) -> Any:
        if type(data) is not kind:
            raise ValueError(f"{what} is wanted, not {data!r}")
        return data

    return read


def _node(data: Any) -> Node:
    slot, _, incarnation = _is(str, "a node")(data).rpartition("#")
    if not incarnation.isdecimal():
        raise ValueError(f"a node is slot#incarnation, not {data!r}")
    return Node(slot, int(incarnation))


@frozen
class _World:
    """A world as a trace tells it."""

    id: WorldId
    members: tuple[Member, ...]
    failures: int
    policy: str
    generation: Generation


def _told(world: World) -> Any:
    return plain(_World(world.id, world.members, world.failures, world.policy, world.generation), _World)


def _world(data: Any) -> World:
    its = made(data, _World)
    return world_of(its.id, its.members, its.failures, its.policy, its.generation)


def _number(data: Any) -> float:
    """Return a number, or infinity for its word: JSON has no infinity."""
    if type(data) is float:
        return data
    if data == "inf":
        return math.inf
    if type(data) not in (int, float):
        raise ValueError(f"a number is wanted, not {data!r}")
    try:
        return float(data)
    except OverflowError:
        raise ValueError(f"a number is wanted, not one of {len(str(data))} digits") from None


def _state(data: Any) -> RendezvousState:
    return data if isinstance(data, RendezvousState) else codec.decode(msgspec.json.encode(data))


def _text(text: str) -> str:
    """Return the text without what no text file can hold: half a surrogate pair, from a file name that is not text."""
    return text.encode(errors="replace").decode()


def _as_it_is(value: Any) -> Any:
    return value


SIMPLE: Mapping[object, Spelling] = {
    Node: Spelling(str, _node),
    float: Spelling(lambda number: "inf" if number == math.inf else number, _number),
    str: Spelling(_text, _is(str, "text")),
    int: Spelling(_as_it_is, _is(int, "a whole number")),
    bool: Spelling(_as_it_is, _is(bool, "true or false")),
    # the register is put in its place by whoever writes the line, who knows whether it stands in an earlier one
    RendezvousState: Spelling(_as_it_is, _state),
    World: Spelling(_told, _world),
    # what only the shell knows is not told
    object: Spelling(lambda value: None, lambda data: None),
}
