"""Values: `frozen` reads a class as `attrs.frozen` does, and has msgspec make it.

The core makes a new value at each step, and a launch imports some 270 classes of values. attrs compiles source for each of
them, and makes values in Python. msgspec does both in C. So a class is written for attrs, with `field`, defaults and
validators, and `attrs.fields` knows it; but it is a struct of msgspec's. `benchmarks/values.py` shows what that buys.
(Before 0.21 of msgspec no validator runs at a change.)

The import of attrs alone is a tenth of the imports of a launch. So what a launch imports has `field`, `fields`, `evolve` and
`define` from here. A type checker takes them for those of attrs, which is imported when somebody asks for its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import force_setattr, replace

if TYPE_CHECKING:  # so a type checker knows what is made, and the fields that may change
    from attrs import define as define
    from attrs import evolve as evolve
    from attrs import field as field
    from attrs import fields as fields
    from attrs import frozen as frozen  # noqa: TID251
else:
    evolve = replace

    def frozen(cls: type[Any] | None = None, /, *, eq: bool = True, repr: bool = True, kw_only: bool = False) -> Any:
        """Build an immutable class with slots, as `attrs.frozen` does with these options. Its instances are equal, and
        hash, by the fields that take part in that, and show themselves with the fields that are shown."""

        def built(given: type[Any]) -> type[Any]:
            if isinstance(given, _StructMeta):
                raise TypeError(f"{given.__qualname__}: a value cannot extend another one")
            if not _can_be_struct(given):
                raise TypeError(f"{given.__qualname__}: attrs.frozen can make this class")
            return _struct(given, eq, repr, kw_only)

        return built if cls is None else built(cls)

    def define(cls: type[Any] | None = None, /, *, eq: bool = True) -> Any:
        """Build a class with slots whose fields may change, as `attrs.define` does of one without validators, without
        converters and without names that begin with _."""

        def built(given: type[Any]) -> type[Any]:
            checked = (each for each in given.__dict__.values() if isinstance(each, _Field))
            if not _can_be_struct(given) or any(each._validator or each.converter for each in checked):
                raise TypeError(f"{given.__qualname__}: attrs.define can make this class")
            return _struct(given, eq, frozen=False)

        return built if cls is None else built(cls)

    def field(**options: Any) -> Any:
        """Return a field, as `attrs.field` does with these options."""
        return _Field(**options)

    def fields(cls: type[Any]) -> Sequence[_Attribute]:
        """Return the attributes of a value's class, as `attrs.fields` does."""
        found = cls.__dict__["__attrs_attrs__"]
        return found.written if isinstance(found, _Attributes) else found


_StructMeta: Any = type(msgspec.Struct)
_NOTHING: Any = msgspec.NODEFAULT
_LEFT = {"__dict__", "__weakref__", "__attrs_post_init__"}

_Step = Callable[[Any], None]


class _Field:
    """A field as it was written. `_default` is its default; or its `factory` makes that, of the value if `takes_self`."""

    __slots__ = ("_default", "_validator", "converter", "eq", "factory", "init", "metadata", "repr", "takes_self")

    def __init__(
        self,
        *,
        default: Any = _NOTHING,
        validator: Any = None,
        repr: bool | Callable[[Any], str] = True,
        eq: bool | Callable[[Any], Any] = True,
        init: bool = True,
        metadata: Mapping[Any, Any] | None = None,
        converter: Callable[[Any], Any] | None = None,
        factory: Callable[..., Any] | None = None,
    ) -> None:
        if not (validator is None or callable(validator)) or type(default).__module__ == "attr._make":
            raise TypeError("give a field one function as its validator, and what makes its default as its factory")
        self._default, self.factory, self.takes_self = default, factory, False
        self._validator, self.converter = validator, converter
        self.repr, self.eq, self.init, self.metadata = repr, eq, init, metadata or {}

    def default(self, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Decorate the method that makes the default."""
        self.factory, self.takes_self = make, True
        return make

    def validator(self, check: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
        """Decorate the method that checks the value."""
        if self._validator:
            raise TypeError(f"{check.__qualname__}: this field has a validator already")
        self._validator = check
        return check

    @property
    def has_default(self) -> bool:
        return self.factory is not None or self._default is not _NOTHING

    @property
    def is_made(self) -> bool:
        """True if `__post_init__` sets it, and not msgspec."""
        return not self.init or self.takes_self


_PLAIN = _Field()


class _Attribute:
    """A field with its name, as a validator and readers of classes see it."""

    __slots__ = ("default", "init", "metadata", "name")

    def __init__(self, name: str, field: _Field, given: Any = _NOTHING) -> None:
        self.name, self.init, self.metadata = name, field.init, field.metadata
        self.default = given if field is _PLAIN else field._default


class _Attributes:
    """Gives `attrs.fields` the attributes that attrs makes of the class as it was written."""

    def __init__(self, given: type[Any], fields: Mapping[str, _Field]) -> None:
        self.given, self._fields = given, fields
        self._attributes: Any = None

    @property
    def written(self) -> tuple[_Attribute, ...]:
        """The fields as they were written."""
        own = self.given.__dict__
        return tuple([_Attribute(name, field, own.get(name, _NOTHING)) for name, field in self._fields.items()])

    def __get__(self, value: object, owner: type[Any]) -> Any:
        if self._attributes is None:  # of a copy: attrs changes the class, and several threads may ask at once
            own = {name: value for name, value in self.given.__dict__.items() if name not in _LEFT}
            self._attributes = _by_attrs(type(self.given.__name__, self.given.__bases__, own)).__attrs_attrs__
        return self._attributes


def _by_attrs(given: type[Any]) -> type[Any]:
    """Return the class that attrs makes."""
    import attrs

    for name, field in [each for each in given.__dict__.items() if isinstance(each[1], _Field)]:
        default = attrs.Factory(field.factory, field.takes_self) if field.factory else field._default
        setattr(
            given,
            name,
            attrs.field(
                default=attrs.NOTHING if default is _NOTHING else default,
                validator=field._validator,
                repr=field.repr,
                eq=field.eq,
                init=field.init,
                metadata=field.metadata,
                converter=field.converter and _written_in_python(field.converter),
            ),
        )
    made: type[Any] = attrs.frozen(given)  # noqa: TID251
    return made


def _written_in_python(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the converter, or a function of Python's that calls it. attrs reads its signature, and that of a C function is
    text to parse: two threads that parse at once fail on Python 3.11, if the collector runs Python code meanwhile."""

    def converted(value: Any) -> Any:
        return convert(value)

    return convert if isinstance(convert, FunctionType) else converted


def _can_be_struct(given: type[Any]) -> bool:
    """A struct has no metaclass of its own, no field with another name in its constructor, no parent that attrs made."""
    named_otherwise = any(name.startswith("_") for name in given.__annotations__)
    is_plain = type(given) is type and not issubclass(given, BaseException)
    return is_plain and not named_otherwise and not any(hasattr(each, "__attrs_attrs__") for each in given.__mro__[1:])


def _struct(given: type[Any], eq: bool, repr: bool = True, kw_only: bool = False, frozen: bool = True) -> type[Any]:
    own = given.__dict__
    kinds = {name: kind for name, kind in given.__annotations__.items() if "ClassVar" not in str(kind)}
    fields = {name: _field(own.get(name)) for name in kinds}
    declared = {name: field for name, field in fields.items() if field is not _PLAIN}
    if without := [name for name, field in declared.items() if not (field.init or field.has_default)]:
        raise TypeError(f"{given.__qualname__}: {without[0]} has no default, and is not given either")
    namespace = {name: value for name, value in own.items() if name not in _LEFT and name not in declared}
    namespace |= {name: default for name, field in declared.items() if (default := _default(field)) is not _NOTHING}
    if any(not field.init for field in declared.values()):
        kinds = {name: kinds[name] for name in sorted(fields, key=lambda name: not fields[name].init)}
    namespace["__annotations__"] = kinds
    namespace["__attrs_attrs__"] = _Attributes(given, fields)
    if steps := list(_steps(given, declared)):
        namespace["__post_init__"] = _post_init(steps)
    if not repr:
        namespace["__repr__"] = object.__repr__
    elif any(field.repr is not True for field in declared.values()):
        namespace.setdefault("__repr__", _shown_by(fields))
    if eq and any(field.eq is not True for field in declared.values()):
        equals, hashes = _compared_by(
            {name: field.eq if callable(field.eq) else None for name, field in fields.items() if field.eq}
        )
        namespace.setdefault("__eq__", equals)
        namespace.setdefault("__hash__", hashes)
    if is_own := "__eq__" in namespace:
        namespace["__ne__"] = object.__ne__
    bases = (msgspec.Struct, *(base for base in given.__bases__ if base is not object))
    made: type[Any] = _StructMeta(
        given.__name__, bases, namespace, frozen=frozen, weakref=True, eq=eq and not is_own, kw_only=kw_only
    )
    return made


def _field(given: Any) -> _Field:
    """Return the field of a class attribute: one of ours, or of attrs, or a plain default."""
    if isinstance(given, _Field):
        return given
    if type(given).__module__ != "attr._make":
        return _PLAIN
    import attrs

    default = given if isinstance(given, attrs.Factory) else given._default  # type: ignore[arg-type]
    read = _Field()
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        read.factory, read.takes_self = default.factory, default.takes_self
    elif default is not attrs.NOTHING:
        read._default = default
    if default is not given:
        read.repr, read.eq, read.init, read.metadata = given.repr, given.eq_key or given.eq, given.init, given.metadata
        read.converter, read._validator = given.converter, given._validator
    return read


def _default(field: _Field) -> Any:
    """Return the default as msgspec takes it."""
    if field.is_made:
        return msgspec.UNSET
    return msgspec.field(default_factory=field.factory) if field.factory else field._default


def _steps(given: type[Any], fields: Mapping[str, _Field]) -> Iterator[_Step]:
    """Yield what is done to a value when its fields are set, in the order of attrs."""
    for name, field in fields.items():
        if field.is_made:
            yield _defaulted(name, field.factory or partial(_same, field._default), field.takes_self, not field.init)
        if field.converter:
            yield _converted(name, field.converter)
    for name, field in fields.items():
        if field._validator:
            yield _validated(_Attribute(name, field), field._validator)
    if own := given.__dict__.get("__attrs_post_init__"):
        yield own


def _post_init(steps: Sequence[_Step]) -> _Step:
    def __post_init__(self: Any) -> None:
        for step in steps:
            step(self)

    return steps[0] if len(steps) == 1 else __post_init__


def _same(value: Any) -> Any:
    return value


def _defaulted(name: str, make: Callable[..., Any], takes_self: bool, always: bool) -> _Step:
    def step(self: Any) -> None:
        if always or getattr(self, name) is msgspec.UNSET:
            force_setattr(self, name, make(self) if takes_self else make())

    return step


def _converted(name: str, convert: Callable[[Any], Any]) -> _Step:
    return lambda self: force_setattr(self, name, convert(getattr(self, name)))


def _validated(attribute: _Attribute, validate: Callable[[Any, Any, Any], None]) -> _Step:
    return lambda self: validate(self, attribute, getattr(self, attribute.name))


def _shown_by(fields: Mapping[str, _Field]) -> Callable[[Any], str]:
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
