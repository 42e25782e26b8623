"""The imports that a standby does early: read from the program's syntax tree, never by running it.

Only installed modules count. The user's own modules are read too, for what they import, but are never imported early: they
may read RANK. An import counts if nothing runs before it that it could notice. So a file is read to its first statement that
calls something. If the program has that statement, or if it changes the environment, sys.path or the filters of warnings,
nothing after it counts in any file. Conditional imports are left out.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from attrs import define, field

from ....core.values import frozen
from ...launch_settings import Function, Kind, Program

_FILES_MAX = 200
"""This many files of the user's are read at most."""
_MAIN_OF_CHILD = "__mp_main__"
"""The name that multiprocessing gives the parent's main module, where the main module is its own."""
_INSTALLED = ("site-packages", "dist-packages")
_CHANGING = frozenset({"append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"})
"""Methods that change a list or a mapping."""
_FILTERS = frozenset({"filterwarnings", "simplefilter", "resetwarnings", "putenv", "unsetenv", "load_dotenv"})
"""Functions that change what a later import prints or finds."""
_SHARED = frozenset({"environ", "environb", "path", "meta_path", "path_hooks", "modules"})
"""Names that all modules share: os.environ, sys.path …"""


@frozen
class EarlyImport:
    """One import that a standby does, as it stands in its file."""

    module: str
    statement: str
    importer: str
    """The name of the importing module."""
    file: str
    line: int


@frozen
class LateImport:
    """An import that is left to the worker, with the reason."""

    module: str
    file: str
    line: int
    why: str


@frozen
class Imports:
    """The imports that a standby makes, in order, and those that it leaves to the script."""

    early: tuple[EarlyImport, ...] = ()
    late: tuple[LateImport, ...] = ()


def named(modules: Sequence[str]) -> Imports:
    """Return the imports of --preload."""
    return Imports(tuple(EarlyImport(each, f"import {each}", "__main__", "--preload", 1) for each in modules))


def imports_of(program: Program | Function, path: Sequence[str], pythonpath: str | None = None) -> Imports:
    """Return the imports of a worker's program. `path` is where its Python finds installed modules."""
    reader = _Reader()
    match program:
        case Program(Kind.SCRIPT, name):
            is_folder = os.path.isdir(name)
            own = name if is_folder else os.path.dirname(os.path.realpath(name))
            reader.path = _path(own, pythonpath, path)
            reader.read(Path(name, "__main__.py") if is_folder else Path(name), "__main__", "")
        case Program(Kind.PATH, name):
            reader.path = _path("", pythonpath, path)
            reader.read(Path(name), "__main__", "")
        case Program(Kind.MODULE, name):
            reader.path = _path("", pythonpath, path)
            reader.run_module(name)
        case Function(module=module):
            reader.path = list(path)
            reader.call(module)
        case _:
            pass
    return Imports(tuple(dict.fromkeys(reader.early)), tuple(dict.fromkeys(reader.late)))


def _path(own: str, pythonpath: str | None, installed: Sequence[str]) -> list[str]:
    return [own, *filter(None, (pythonpath or "").split(os.pathsep)), *installed]


@define
class _Reader:
    path: list[str] = field(factory=list)
    early: list[EarlyImport] = field(factory=list)
    late: list[LateImport] = field(factory=list)
    _seen: set[Path] = field(factory=set)
    _over: str = ""
    """Why nothing more is imported early."""

    def run_module(self, name: str) -> None:
        """Read what `python -m` runs: the packages around the module, then the module as `__main__`."""
        package, _, _ = name.rpartition(".")
        found = self._find(name)
        if found is not None and found.submodule_search_locations is not None:
            package, found = name, self._find(f"{name}.__main__")
        for place in _parents(package):
            self._imported(ast.Import([ast.alias(place)]), place, _Place("__main__", package, "-m", 1))
        if found is not None and found.origin:
            self.read(Path(found.origin), "__main__", package)

    def call(self, module: str) -> None:
        """Read what a worker imports that calls a function of this module: this process's main module, then that one.

        multiprocessing leaves out a main module that is a package's.
        """
        main = sys.modules.get("__main__")
        file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
        if file and not (spec and spec.name.endswith("__main__")):
            self.read(Path(file), _MAIN_OF_CHILD, spec.parent if spec else "")
        if module != "__main__":
            self._imported(ast.Import([ast.alias(module)]), module, _Place(_MAIN_OF_CHILD, "", "elastic.launch", 1))

    def read(self, file: Path, name: str, package: str) -> None:
        """Read one module of the user's."""
        if file in self._seen or len(self._seen) == _FILES_MAX:
            return
        if not file.is_file():
            return  # a pipe is for the worker to read
        self._seen.add(file)
        try:
            body = ast.parse(file.read_bytes()).body
        except (OSError, SyntaxError, ValueError, RecursionError):
            return  # whoever runs it says so
        ended = ""
        for statement in body:
            place = _Place(name, package, str(file), statement.lineno)
            if self._over or ended:
                self._leave(statement, place, self._over or ended)
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                self._import(statement, place)
            elif name == _MAIN_OF_CHILD and _is_guarded(statement):
                continue
            elif _is_harmless(statement):
                self._leave(statement, place, "conditional")
            else:
                ended = f"{file}:{statement.lineno} runs first: {_words(statement)}"
                self._leave(statement, place, "conditional")
            if not self._over and (
                _changes_what_is_shared(statement) or (ended and name in ("__main__", _MAIN_OF_CHILD))
            ):
                self._over = ended or f"{file}:{statement.lineno} runs first: {_words(statement)}"

    def _import(self, statement: ast.Import | ast.ImportFrom, place: _Place) -> None:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                self._imported(ast.Import([alias]), alias.name, place)
            return
        module = statement.module or ""
        if statement.level:
            if not place.package:
                return  # such an import fails
            parts = place.package.split(".")
            module = ".".join([*parts[: len(parts) - statement.level + 1], *filter(None, [module])])
        if module == "__future__":
            return
        self._imported(statement, module, place, [alias.name for alias in statement.names])

    def _imported(
        self, statement: ast.Import | ast.ImportFrom, module: str, place: _Place, names: Iterable[str] = ()
    ) -> None:
        """Take an import that runs whenever the program does."""
        top = module.partition(".")[0]
        if self._over:
            self.late.append(LateImport(module, place.file, place.line, self._over))
        elif _is_built_in(top) or self._is_installed(top):
            self.early.append(EarlyImport(module, ast.unparse(statement), place.name, place.file, place.line))
        elif self._find(top) is None:
            self.late.append(LateImport(module, place.file, place.line, "not found"))
        else:
            self.late.append(LateImport(module, place.file, place.line, "your own: may read RANK"))
            for each in (*_parents(module), *(f"{module}.{name}" for name in names)):
                found = self._find(each)
                if found is not None and found.origin and found.origin.endswith(".py"):
                    is_package = found.submodule_search_locations is not None
                    self.read(Path(found.origin), each, each if is_package else each.rpartition(".")[0])

    def _leave(self, statement: ast.stmt, place: _Place, why: str) -> None:
        """Note the imports inside a statement as late."""
        for each in _now(statement):
            match each:
                case ast.Import(names):
                    self.late += [LateImport(alias.name, place.file, each.lineno, why) for alias in names]
                case ast.ImportFrom(module, level=level):
                    self.late.append(LateImport("." * level + (module or ""), place.file, each.lineno, why))
                case _:
                    pass

    def _find(self, module: str) -> ModuleSpec | None:
        """Return the module's spec, without an import."""
        path, spec = self.path, None
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            try:
                spec = PathFinder.find_spec(".".join(parts[:end]), path)
            except (ImportError, ValueError, AttributeError):
                return None
            if spec is None:
                return None
            path = list(spec.submodule_search_locations or ())
        return spec

    def _is_installed(self, top: str) -> bool:
        found = self._find(top)
        if found is None:
            return False
        places = [found.origin] if found.origin else list(found.submodule_search_locations or ())
        return bool(places) and all(
            any(part in _INSTALLED for part in Path(place).parts)
            or (top in sys.stdlib_module_names and place.startswith(os.path.dirname(os.__file__)))
            for place in places
        )


@frozen
class _Place:
    name: str
    package: str
    file: str
    line: int


def _is_built_in(top: str) -> bool:
    return top in sys.builtin_module_names


def _parents(module: str) -> Iterator[str]:
    """Yield a, a.b, a.b.c."""
    parts = module.split(".") if module else []
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])


def _now(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through what runs when the statement does: not through the bodies of functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and child not in _outside(node):
            continue
        yield from _now(child)


def _outside(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.AST]:
    """Return the parts of a function that run when it is defined."""
    decorators = [] if isinstance(function, ast.Lambda) else function.decorator_list
    return [function.args, *decorators]


def _is_guarded(statement: ast.stmt) -> bool:
    """Return True for `if __name__ == "__main__"`."""
    match statement:
        case ast.If(test=ast.Compare(ast.Name("__name__"), [ast.Eq()], [ast.Constant("__main__")]), orelse=[]):
            return True
        case _:
            return False


def _is_harmless(statement: ast.stmt) -> bool:
    """Return True if no later import can notice that the statement ran: it calls nothing."""
    if isinstance(statement, ast.While | ast.With | ast.AsyncWith | ast.Assert | ast.Raise | ast.Delete):
        return False
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and statement.decorator_list:
        return False
    return not any(
        isinstance(node, ast.Call | ast.Await | ast.Yield | ast.NamedExpr) for node in _now(statement)
    ) and not any(
        isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load)
        for node in _now(statement)
    )


def _changes_what_is_shared(statement: ast.stmt) -> bool:
    """Return True if the statement changes what later imports find, read or print."""
    for node in _now(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=shared) | ast.Name(id=shared), attr=method)) if (
                shared in _SHARED and method in _CHANGING
            ):
                return True
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _FILTERS:
                return True
            case ast.Subscript(value=ast.Attribute(attr=shared) | ast.Name(id=shared), ctx=ast.Store() | ast.Del()) if (
                shared in _SHARED
            ):
                return True
            case ast.Attribute(attr=shared, ctx=ast.Store()) if shared in _SHARED:
                return True
            case ast.AugAssign(target=ast.Attribute(attr=shared) | ast.Name(id=shared)) if shared in _SHARED:
                return True
            case _:
                pass
    return False


def _words(statement: ast.stmt) -> str:
    """Return the first line of a statement, cut."""
    line = ast.unparse(statement).partition("\n")[0]
    return line if len(line) <= 60 else f"{line[:59]}…"
