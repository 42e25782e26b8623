"""What the core may not write, found in its syntax trees: foreign imports, doors to the world, orders out of a set, and
writes into values that were made.

Four rules. Imports: an allow-list, and relative ones that stay inside the core, so time, chance, files, sockets and
threads are out because nothing lets them in. Builtins: none that reach the world, or that tell an address or a seeded
hash. Sets: an order must never come out of one, since string hashes differ from run to run; what goes through a set
comes back out through `sorted`, or into another set, or as one value (len, any, all, sum, min, max). Values: nothing goes
past the freeze of a class, so there is no `__setattr__`, no `setattr`, no `__dict__`, no change of a `__class__`, and no
`cached_property`, which writes into the value that it is asked of. (The type checker refuses a plain assignment.)

A tree has no types, so an expression counts as a set when it shows: a display, `set(...)`, a set operation, a name or
field annotated as a set, a function that returns one. Fields are known by name alone, over all files of the core at
once; a name that is a set in one class and something else in another is let go. What escapes is caught by running under
several hash seeds.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import TypeAlias

from attrs import field, frozen

IMPORTS = frozenset(
    "__future__ attrs bisect collections collections.abc enum functools hashlib heapq itertools json math msgspec "
    "msgspec.json msgspec.structs operator re reprlib types typing zlib".split()
)
FRONT = "__init__.py"
"""The core's own front may import importlib: it imports some of its rooms when they are first named."""
DOORS = frozenset("open print input exec eval compile __import__ breakpoint globals __builtins__ __loader__".split())
NOT_THE_SAME_TWICE = frozenset({"id", "hash"})

SET_TYPES = frozenset("set frozenset Set AbstractSet FrozenSet MutableSet".split())
SET_METHODS = frozenset("union intersection difference symmetric_difference".split())
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
TAKES_ORDER = frozenset(
    "list tuple iter next enumerate zip map filter reversed str repr format dict join fromkeys extend deque chain "
    "from_iterable reduce islice groupby accumulate".split()
)
"""Functions and methods whose result depends on the order of what they are given."""
FORGETS_ORDER = frozenset("sorted set frozenset len any all sum min max".split()) | SET_METHODS

PAST_THE_FREEZE = frozenset("__setattr__ __delattr__ __setstate__ __dict__".split())
WRITERS = frozenset("setattr delattr force_setattr vars cached_property".split())
ALLOWED: Mapping[tuple[str, str], str] = {
    ("values.py", "names given.__dict__"): "a class that is being made is asked what it defines itself",
    ("values.py", "names self.given.__dict__"): "and what it defines itself is told on",
    ("values.py", "names cls.__dict__"): "and a class that was made, what was written of its fields",
    ("values.py", "names setattr"): "a class that attrs is to make gets the fields of attrs",
    ("properties/law.py", "names vars"): "the laws of a module are read in the order in which they stand there",
    ("values.py", "names force_setattr"): "a value that is being made gets the fields that are worked out at its birth",
}
"""(File, complaint) -> why a write past the freeze is none into a value that was made."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@frozen
class Complaint:
    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"core/{self.file}:{self.line}: {self.what}"


def complaints(sources: Mapping[str, str]) -> list[Complaint]:
    """All that is wrong with the core's files; keys are paths under core/."""
    trees = {file: ast.parse(source, file) for file, source in sources.items()}
    known = sets_by_name(trees.values())
    return [
        Complaint(file, line, what)
        for file, tree in trees.items()
        for line, what in sorted({*imports(file, tree), *builtins(tree), *Orders(known).of(tree), *writes(file, tree)})
    ]


# ------------------------------------------------------------------------------------------------- imports and builtins

Found: TypeAlias = Iterator[tuple[int, str]]


def imports(file: str, tree: ast.Module) -> Found:
    depth = len(PurePosixPath(file).parts)  # dots that reach core/ itself
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ((node.lineno, f"imports {name.name}") for name in names if name.name not in IMPORTS)
            case ast.ImportFrom(module, _, 0):
                if module not in IMPORTS and (file, module) != (FRONT, "importlib"):
                    yield node.lineno, f"imports {module}"
            case ast.ImportFrom(module, _, int(level)) if level > depth:
                yield node.lineno, f"imports {'.' * level}{module or ''}, which is outside the core"
            case ast.alias("*"):
                yield node.lineno, "imports *"
            case _:
                pass


def builtins(tree: ast.Module) -> Found:
    for node in ast.walk(tree):
        match node:
            case ast.Name(name) if name in DOORS:
                yield node.lineno, f"names {name}"
            case ast.Call(ast.Name(name)) if name in NOT_THE_SAME_TWICE:
                yield node.lineno, f"calls {name}(), which differs from run to run"
            case ast.Global(names):
                yield node.lineno, f"changes the module's own state: global {', '.join(names)}"
            case _:
                pass


# --------------------------------------------------------------------------------------------------------------- values


def writes(file: str, tree: ast.Module) -> Found:
    """Writes past the freeze of a value, but for those that are allowed."""
    return (found for found in all_writes(tree) if (file, found[1]) not in ALLOWED)


def all_writes(tree: ast.Module) -> Found:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(_, "__class__", ast.Store() | ast.Del()):
                yield node.lineno, "assigns a __class__"
            case ast.Attribute(_, name) if name in PAST_THE_FREEZE:
                yield node.lineno, f"names {ast.unparse(node)}"
            case ast.Name(name) | ast.Attribute(_, name) | ast.alias(name) if name in WRITERS:
                yield node.lineno, f"names {name}"
            case _:
                pass


# ----------------------------------------------------------------------------------------------------------------- sets


@frozen
class Known:
    """Names that mean a set, over the whole core: type aliases, fields, and functions by what they return."""

    types: frozenset[str] = SET_TYPES
    fields: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()

    def is_type(self, annotation: ast.expr | None) -> bool:
        match annotation:
            case ast.Name(name) | ast.Attribute(_, name):
                return name in self.types
            case ast.Subscript(value):
                return self.is_type(value)
            case ast.BinOp(left, ast.BitOr(), right):
                return self.is_type(left) or self.is_type(right)
            case _:
                return False


def sets_by_name(trees: Iterable[ast.Module]) -> Known:
    nodes = [node for tree in trees for node in ast.walk(tree)]
    plain = Known()
    aliases = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Subscript)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and plain.is_type(node.value)
    }
    known = Known(types=SET_TYPES | aliases)
    fields: dict[str, set[bool]] = defaultdict(set)
    functions: dict[str, set[bool]] = defaultdict(set)
    for node in nodes:
        match node:
            case ast.ClassDef(body=body):
                for part in body:
                    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        fields[part.target.id].add(known.is_type(part.annotation))
            case ast.FunctionDef(name=name, returns=returns, decorator_list=decorators):
                of_a_field = any(isinstance(d, ast.Name) and "property" in d.id for d in decorators)
                (fields if of_a_field else functions)[name].add(known.is_type(returns))
            case _:
                pass
    return Known(known.types, _always(fields), _always(functions))


def _always(seen: Mapping[str, set[bool]]) -> frozenset[str]:
    return frozenset(name for name, kinds in seen.items() if kinds == {True})


@frozen
class Orders:
    """Finds where an order is taken out of a set; `names` are the variables in sight that hold one."""

    known: Known
    names: frozenset[str] = field(default=frozenset())

    def of(self, scope: ast.AST) -> Found:
        inner = Orders(self.known, self._names_in(scope))
        for node in _own_nodes(scope):
            if isinstance(node, Function):
                yield from inner.of(node)
            else:
                yield from (
                    (node.lineno, f"takes an order out of a set: {ast.unparse(node)}") for node in inner._at(node)
                )

    def _names_in(self, scope: ast.AST) -> frozenset[str]:
        """Arguments and variables of the scope that are sets in every place where they get a value."""
        seen: dict[str, set[bool]] = defaultdict(set)
        for argument in _arguments(scope):
            seen[argument.arg].add(self.known.is_type(argument.annotation))
        for node in _own_nodes(scope):
            match node:
                case ast.AnnAssign(ast.Name(name), annotation):
                    seen[name].add(self.known.is_type(annotation))
                case ast.Assign([ast.Name(name)], value) | ast.NamedExpr(ast.Name(name), value):
                    seen[name].add(self.is_set(value))
                case ast.For(ast.Name(name)) | ast.comprehension(ast.Name(name)):
                    seen[name].add(False)
                case _:
                    pass
        return (self.names - seen.keys()) | _always(seen)

    def is_set(self, value: ast.expr) -> bool:
        match value:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(name):
                return name in self.names
            case ast.Attribute(_, name):
                return name in self.known.fields
            case ast.Call(ast.Name(name)):
                return name in SET_TYPES or name in self.known.functions
            case ast.Call(ast.Attribute(_, name)):
                return name in SET_METHODS or name in self.known.functions
            case ast.BinOp(left, operator, right) if isinstance(operator, SET_OPERATORS):
                return self.is_set(left) or self.is_set(right) or _is_keys(left)
            case ast.IfExp(_, first, second):
                return self.is_set(first) or self.is_set(second)
            case ast.BoolOp(_, values):
                return any(map(self.is_set, values))
            case ast.NamedExpr(_, inner):
                return self.is_set(inner)
            case _:
                return False

    def _at(self, node: ast.AST) -> Iterator[ast.expr]:
        match node:
            case ast.For(_, value) | ast.YieldFrom(value) | ast.FormattedValue(value) if self.is_set(value):
                yield value
            case ast.ListComp(_, loops) | ast.DictComp(_, _, loops):
                yield from (loop.iter for loop in loops if self.is_set(loop.iter))
            case ast.List(values) | ast.Tuple(values):
                yield from (v.value for v in values if isinstance(v, ast.Starred) and self.is_set(v.value))
            case ast.Assign([ast.Tuple(targets) | ast.List(targets)], value) if len(targets) > 1 and self.is_set(value):
                yield value
            case ast.Call():
                yield from self._at_call(node)
            case _:
                pass

    def _at_call(self, call: ast.Call) -> Iterator[ast.expr]:
        callee = call.func
        name = callee.id if isinstance(callee, ast.Name) else callee.attr if isinstance(callee, ast.Attribute) else ""
        if isinstance(callee, ast.Attribute) and name == "pop" and self.is_set(callee.value):
            yield callee.value
        ties = name in {"min", "max"} and any(keyword.arg == "key" for keyword in call.keywords)
        for argument in call.args:
            match argument:
                case ast.Starred(value) if self.is_set(value) and name not in FORGETS_ORDER:
                    yield value
                case ast.GeneratorExp(_, loops) if name not in FORGETS_ORDER or ties:
                    yield from (loop.iter for loop in loops if self.is_set(loop.iter))
                case _ if (name in TAKES_ORDER or ties) and self.is_set(argument):
                    yield argument


def _is_keys(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in {"keys", "items"}
    )


def _arguments(scope: ast.AST) -> list[ast.arg]:
    if not isinstance(scope, Function):
        return []
    return [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes under the scope, down to the functions inside it but not into them."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, Function):
            yield from _own_nodes(child)
