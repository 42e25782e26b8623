"""Values: `frozen` reads a class as `attrs.frozen` does, and has msgspec make it.

The core makes a new value at each step, and a launch imports some 270 classes of values. attrs compiles source for each of
them, and makes values in Python. msgspec does both in C. So a class is written for attrs, with `attrs.field`, defaults and
validators, and `attrs.fields` knows it; but it is a struct of msgspec's, unless it is one of the few that cannot be.
`benchmarks/values.py` shows what that buys. (Before 0.21 of msgspec no validator runs at a change.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
from msgspec.structs import force_setattr, replace

if TYPE_CHECKING:  # so a type checker knows what is made, and the fields that may change
    from attrs import evolve as evolve
    from attrs import frozen as frozen  # noqa: TID251
else:
    evolve = replace

    def frozen(cls: type[Any] | None = None, /, *, eq: bool = True, **options: Any) -> Any:
        """Build an immutable class with slots, as `attrs.frozen` does with these options. Its instances are equal, and
        hash, by the fields that take part in that, and show themselves with the fields that are shown."""

        def built(given: type[Any]) -> type[Any]:
            if isinstance(given, _StructMeta):
                raise TypeError(
                    f"{given.__qualname__}: a value cannot extend another one, attrs.define(frozen=True) can"
                )
            if not _can_be_struct(given) or not options.keys() <= {"kw_only", "repr"}:
                return attrs.frozen(given, eq=None if eq else False, **options)  # noqa: TID251
            return _struct(given, eq, **options)

        return built if cls is None else built(cls)


_CountingAttr: Any = type(attrs.field())
_Factory: Any = attrs.Factory
_StructMeta: Any = type(msgspec.Struct)
_PLAIN: Any = attrs.field()
_LEFT = {"__dict__", "__weakref__", "__attrs_post_init__"}

_Step = Callable[[Any], None]


class _Attributes:
    """Gives `attrs.fields` the attributes that attrs makes of the class as it was written."""

    def __init__(self, given: type[Any]) -> None:
        self.given = given
        self._attributes: Any = None

    def __get__(self, value: object, owner: type[Any]) -> Any:
        if self._attributes is None:
            self._attributes = attrs.fields(attrs.frozen(self.given))  # noqa: TID251
        return self._attributes


class _Named:
    """Stands for the attribute where a validator of a struct asks for its name."""

    def __init__(self, name: str) -> None:
        self.name = name


def _can_be_struct(given: type[Any]) -> bool:
    """A struct has no metaclass of its own, no field with another name in its constructor, no parent that attrs made."""
    named_otherwise = any(name.startswith("_") for name in given.__annotations__)
    is_plain = type(given) is type and not issubclass(given, BaseException)
    return is_plain and not named_otherwise and not any(map(attrs.has, given.__mro__[1:]))


def _struct(given: type[Any], eq: bool, repr: bool = True, kw_only: bool = False) -> type[Any]:
    own = given.__dict__
    kinds = {name: kind for name, kind in given.__annotations__.items() if "ClassVar" not in str(kind)}
    fields = {name: _field(own.get(name)) for name in kinds}
    at_birth = sorted(fields, key=lambda name: not fields[name].init)
    namespace = {name: value for name, value in own.items() if name not in _LEFT and fields.get(name, _PLAIN) is _PLAIN}
    namespace |= {name: _default(field) for name, field in fields.items() if field._default is not attrs.NOTHING}
    namespace["__annotations__"] = {name: kinds[name] for name in at_birth}
    namespace["__attrs_attrs__"] = _Attributes(given)
    if steps := _steps(given, fields):
        namespace["__post_init__"] = _post_init(steps)
    if not repr:
        namespace["__repr__"] = object.__repr__
    elif any(field.repr is not True for field in fields.values()):
        namespace.setdefault("__repr__", _shown_by(fields))
    compared = {name: field.eq_key for name, field in fields.items() if field.eq}
    if eq and (len(compared) < len(fields) or any(compared.values())):
        equals, hashes = _compared_by(compared)
        namespace.setdefault("__eq__", equals)
        namespace.setdefault("__hash__", hashes)
    if is_own := "__eq__" in namespace:
        namespace["__ne__"] = object.__ne__
    bases = (msgspec.Struct, *(base for base in given.__bases__ if base is not object))
    made: type[Any] = _StructMeta(
        given.__name__, bases, namespace, frozen=True, weakref=True, eq=eq and not is_own, kw_only=kw_only
    )
    return made


def _field(given: Any) -> Any:
    if isinstance(given, _CountingAttr):
        return given
    return attrs.field(default=given) if isinstance(given, _Factory) else _PLAIN


def _default(field: Any) -> Any:
    default = field._default
    if not field.init or (isinstance(default, _Factory) and default.takes_self):
        return msgspec.UNSET
    return msgspec.field(default_factory=default.factory) if isinstance(default, _Factory) else default


def _steps(given: type[Any], fields: Mapping[str, Any]) -> list[_Step]:
    """Return what is done to a value when its fields are set, in the order of attrs."""
    steps: list[_Step] = []
    for name, field in fields.items():
        if _default(field) is msgspec.UNSET:
            steps.append(_defaulted(name, field._default, always=not field.init))
        if field.converter:
            steps.append(_converted(name, field.converter))
    steps += [_validated(_Named(name), field._validator) for name, field in fields.items() if field._validator]
    own = given.__dict__.get("__attrs_post_init__")
    return [*steps, own] if own else steps


def _post_init(steps: Sequence[_Step]) -> _Step:
    def __post_init__(self: Any) -> None:
        for step in steps:
            step(self)

    return steps[0] if len(steps) == 1 else __post_init__


def _defaulted(name: str, default: Any, always: bool) -> _Step:
    make, takes_self = default.factory, default.takes_self

    def step(self: Any) -> None:
        if always or getattr(self, name) is msgspec.UNSET:
            force_setattr(self, name, make(self) if takes_self else make())

    return step


def _converted(name: str, convert: Callable[[Any], Any]) -> _Step:
    return lambda self: force_setattr(self, name, convert(getattr(self, name)))


def _validated(attribute: _Named, validate: Callable[[Any, Any, Any], None]) -> _Step:
    return lambda self: validate(self, attribute, getattr(self, attribute.name))


def _shown_by(fields: Mapping[str, Any]) -> Callable[[Any], str]:
    texts = [(name, repr if field.repr is True else field.repr) for name, field in fields.items() if field.repr]

    def __repr__(self: object) -> str:
        return f"{type(self).__name__}({', '.join([f'{name}={text(getattr(self, name))}' for name, text in texts])})"

    return recursive_repr()(__repr__)


def _compared_by(
    keys: Mapping[str, Callable[[Any], Any] | None],
) -> tuple[Callable[[Any, object], Any], Callable[[Any], int]]:
    plain = [name for name, key in keys.items() if not key]
    keyed = [(name, key) for name, key in keys.items() if key]
    read: Callable[[object], Any] = attrgetter(*plain) if plain else lambda self: ()

    def values(self: Any) -> tuple[Any, ...]:
        return read(self), *[key(getattr(self, name)) for name, key in keyed]

    def __eq__(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:
        return values(self).__hash__()

    return __eq__, __hash__
