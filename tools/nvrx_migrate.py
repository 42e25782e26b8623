"""`python tools/nvrx_migrate.py FILE...` tells which names of nvidia-resiliency-ext's wrapper a program uses, and
what they are here. It reads the syntax tree and runs nothing of the program.

It exits with 0 if all names are there, with 1 if one is absent or unknown, and with 2 if a file cannot be read.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
import warnings
from collections import Counter

from attrs import define, field, frozen
from nvrx_names import ABSENT, DIFFERENT, OURS, SAME, TOP, Kind, full, told

from elastic.adapters.terminal import printed, why

WHOLE, THEIRS = "nvidia_resiliency_ext", "nvidia_resiliency_ext.inprocess"
USAGE = "usage: python tools/nvrx_migrate.py FILE...\n"


@frozen(order=True)
class Use:
    """One place where a program uses a name, or imports it (an empty name: the package)."""

    line: int
    name: str
    imported: str = ""
    """The text of an import, as it is to be."""


class Unreadable(Exception):
    """A file cannot be read. The text says why."""


def uses(text: str, path: str) -> list[Use]:
    """Return the uses in a program's text, in their order. Raises Unreadable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        at = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise Unreadable(
            f"{path}{at}: no Python {sys.version_info[0]}.{sys.version_info[1]}: {_reason(error)}"
        ) from error
    reader = Reader()
    reader.visit(tree)
    return sorted(set(reader.found))


def _reason(error: Exception) -> str:
    return (error.msg if isinstance(error, SyntaxError) else str(error)) or "too deep"


@define
class Reader(ast.NodeVisitor):
    """Reads a program. `bound` holds the names of the program that mean a name of the package."""

    bound: dict[str, str] = field(factory=dict)
    """A dotted path of the program, as `inprocess.abort`, to the name of the package, as `abort`; the package is empty."""
    found: list[Use] = field(factory=list)

    whole: dict[str, int] = field(factory=dict)
    """The names of the program that mean the package around it, and the lines of their imports."""

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            inner = _inner(each.name)
            if inner is not None:
                self.bound[each.asname or each.name] = inner
                self._imported(node, inner, ast.unparse(node).replace(THEIRS, OURS))
            elif each.name == WHOLE:
                self.whole[each.asname or WHOLE] = node.lineno

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            return
        for each in node.names:
            inner = _inner(node.module if each.name == "*" else f"{node.module}.{each.name}")
            if inner is None:
                continue
            self.bound |= _by_star(inner) if each.name == "*" else {each.asname or each.name: inner}
            self._imported(node, inner, _import_from(node))

    def _imported(self, node: ast.AST, inner: str, text: str) -> None:
        self.found.append(Use(node.lineno, inner, "" if text == ast.unparse(node) else text))  # type: ignore[attr-defined]

    def visit_Constant(self, node: ast.Constant) -> None:
        """The name of a module, for importlib."""
        if isinstance(node.value, str) and re.fullmatch(rf"{re.escape(THEIRS)}[\w.]*", node.value):
            inner = _inner(node.value)
            if inner is not None:
                self._imported(node, inner, repr(node.value.replace(THEIRS, OURS)))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._read(node):
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._read(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A parameter is a name as well."""
        if name := self._name(node.func):
            for each in node.keywords:
                if each.arg:
                    self.found.append(Use(each.value.lineno, f"{name}({each.arg})"))
        self.generic_visit(node)

    def _read(self, node: ast.expr) -> bool:
        if name := self._name(node):
            self.found.append(Use(node.lineno, name))
        return name is not None

    def _name(self, node: ast.expr) -> str | None:
        """Return the package's name that an expression means; None if it means none."""
        path = _path(node)
        if path[1:2] == ["inprocess"] and path[0] in self.whole:
            change = f"import {OURS}  # and what it is used by: {path[0]}.inprocess"
            self.found.append(Use(self.whole[path[0]], "", change))
            return ".".join(path[2:])
        for cut in range(len(path), 0, -1):
            inner = self.bound.get(".".join(path[:cut]))
            if inner is not None:
                return ".".join(filter(None, (inner, *path[cut:])))
        return None


def _inner(name: str) -> str | None:
    """Return the package's own name for a dotted name: empty for the package, None for a name of another."""
    for package in (THEIRS, OURS):
        if name == package:
            return ""
        if name.startswith(f"{package}."):
            return name.removeprefix(f"{package}.")
    return None


def _import_from(node: ast.ImportFrom) -> str:
    """Return the text of an import as it is to be. What is not of this package stays where it is."""
    if node.module != WHOLE:
        star = (
            "  # of its names the classes alone are looked for"
            if (node.module, node.names[0].name) == (THEIRS, "*")
            else ""
        )
        return ast.unparse(node).replace(THEIRS, OURS) + star
    ours, others = ([each for each in node.names if (each.name == "inprocess") is wanted] for wanted in (True, False))
    texts = [ast.unparse(ast.ImportFrom("elastic", ours, 0))]
    return "; ".join(texts + [ast.unparse(ast.ImportFrom(WHOLE, others, 0))] * bool(others))


def _by_star(inner: str) -> dict[str, str]:
    """Return the names that `from ... import *` binds: of a module all that are known, of the package its classes. The names
    of its modules are those of many variables."""
    if not inner:
        return dict(TOP)
    names = (name.removeprefix(f"{inner}.") for name in (*SAME, *DIFFERENT, *ABSENT) if name.startswith(f"{inner}."))
    return {name: f"{inner}.{name}" for name in names if name.isidentifier()}


def _path(node: ast.expr) -> list[str]:
    """Return the parts of a dotted name; none for another expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = _path(node.value)
        return [*before, node.attr] if before else []
    return []


def lines(path: str, found: list[Use]) -> tuple[list[str], Counter[Kind]]:
    """Return what to tell of one program, and how many names it uses of each kind."""
    texts, kinds = dict[str, None](), dict[str, Kind]()
    for use in found:
        kind, reason = told(use.name) if use.name else (Kind.SAME, "")
        if use.name:
            kinds[full(use.name)] = kind
        if kind in (Kind.ABSENT, Kind.UNKNOWN) or (kind is Kind.DIFFERENT and not use.imported):
            texts[f"{path}:{use.line}: {use.name}: {kind.value} ({reason})"] = None
        elif use.imported:
            texts[f"{path}:{use.line}: change the import: {use.imported}"] = None
    return list(texts), Counter(kinds.values())


def run(paths: list[str]) -> int:
    """Tell of each file. Return the exit code."""
    if not paths or any(path.startswith("-") for path in paths):
        out, code = (sys.stdout, 0) if {"-h", "--help"} & set(paths) else (sys.stderr, 2)
        out.write(f"{__doc__}\n{USAGE}" if code == 0 else USAGE)
        return code
    total = Counter[Kind]()
    code = 0
    for path in paths:
        try:
            texts, kinds = lines(path, uses(_text(path), path))
        except Unreadable as error:
            sys.stderr.write(printed(str(error)))
            code = 2
            continue
        sys.stdout.write(printed(*texts))
        total += kinds
    counts = ", ".join(f"{total[kind]} {kind.value}" for kind in Kind if total[kind] or kind is not Kind.UNKNOWN)
    sys.stdout.write(printed(f"names of nvidia-resiliency-ext: {counts}"))
    return code or int(bool(total[Kind.ABSENT] or total[Kind.UNKNOWN]))


def _text(path: str) -> str:
    """Return a program's text. Raises Unreadable."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {why(error)}") from error
    except (SyntaxError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read: no text in UTF-8 or in the encoding that it names") from error


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
