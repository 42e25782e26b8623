"""The program's main module, as workers that are started anew would import it: why that cannot go well, if it cannot.

Such a worker runs the main module again, under another name, and finds functions and classes in it by their names. That
fails where the module has no file, or binds a name under its main guard. A module that launches outside of one launches in
each worker again. Only what is certain is refused: a call that is a statement of its own, below no condition of any kind.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ...process_stat import stat

_MAIN = "__main__"
_FORK = "write start_method='fork'"
_NO_MODULE = (
    "workers cannot import the program's main module (a notebook, python -c, standard input, a package's __main__)"
)
_UNCONDITIONAL = ast.Expr | ast.Assign | ast.Return | ast.With | ast.Try | ast.ClassDef | ast.FunctionDef
_READ_S = 0.05
"""The start of a process is known to 10 ms, and the change of a file to 4 or 10 ms."""
_GUARDED = "is defined under if __name__ == '__main__', which workers do not run"


def why_not(used: Sequence[str], preparation: Mapping[str, Any]) -> str | None:
    """Return why workers cannot be started with this, and the remedy; None if nothing is known against it. `used` are the
    qualified names of the main module's functions and classes in the call; `preparation` is multiprocessing's."""
    name, path = preparation.get("init_main_from_name"), preparation.get("init_main_from_path")
    is_found = (name and name.rpartition(".")[2] != _MAIN) or path
    if not is_found:
        return f"{used[0]}: {_NO_MODULE}; {_FORK}, or define it in a module" if used else None
    file = path or getattr(sys.modules[_MAIN], "__file__", None)
    try:
        tree = ast.parse(Path(file).read_bytes()) if file and not _has_changed(file) else None
    except (OSError, ValueError, SyntaxError):  # no source: nothing is known of it
        return None
    return (_under_the_guard(tree, used) or _launches_again(tree, str(file))) if tree else None


def _has_changed(file: str) -> bool:
    """Return True if this file may be another one than the one that this process runs."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(stat(os.getpid())[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - os.stat(file).st_mtime < age - _READ_S


def _under_the_guard(tree: ast.Module, used: Sequence[str]) -> str | None:
    guards = [each for each in tree.body if isinstance(each, ast.If) and _is_guard(each.test)]
    guarded = {name for guard in guards for each in guard.body for name in _bound(each)}
    others = {name for each in tree.body if each not in guards for name in _bound(each)}
    others |= {name for guard in guards for each in guard.orelse for name in _bound(each)}
    for name in () if "*" in others else used:
        if name.partition(".")[0] in guarded - others:
            return f"{name}: {_GUARDED}; define it above, or {_FORK}"
    return None


def _launches_again(tree: ast.Module, file: str) -> str | None:
    """Return what is wrong with a launch that each import of the main module would repeat."""
    lines = _lines_of_the_main_module()
    is_handled: bool | None = False
    for line in reversed(lines):
        if is_handled is not None:
            is_handled = _if_sure(tree, line, is_handled)
    if not lines or is_handled is None:
        return None
    again = "workers import this program, and would launch again there"
    return f"{os.path.basename(file)}, line {lines[-1]}: {again}; put it under if __name__ == '__main__', or {_FORK}"


def _if_sure(tree: ast.Module, line: int, is_handled: bool) -> bool | None:
    """Return if an exception at this line may be handled, where a plain call stands that runs for sure; else None: below a
    condition, behind a return, or where what comes before may raise and that is handled. `is_handled`: an exception of the
    function around the line may be, in its callers."""
    body: Sequence[ast.stmt] = tree.body
    plain, in_function, may_skip = None, False, False
    while inner := [each for each in body if each.lineno <= line <= (each.end_lineno or 0)]:
        if len(inner) > 1 or not isinstance(inner[0], _UNCONDITIONAL):
            return None
        (plain,) = inner
        before = body[: body.index(plain)]
        if (may_skip and before) or (in_function and any(map(_may_return, before))):
            return None
        if isinstance(plain, ast.FunctionDef):
            in_function, may_skip = True, is_handled
        may_skip = may_skip or (isinstance(plain, ast.Try) and bool(plain.handlers))
        body = _statements(plain)
    return may_skip if plain is not None and _is_call(plain) else None


def _may_return(part: ast.AST) -> bool:
    """Return True if this statement, or part of one, may end the function in which it stands."""
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return isinstance(part, ast.Return) or any(map(_may_return, ast.iter_child_nodes(part)))


def _is_call(statement: ast.stmt) -> bool:
    """Return True if the statement calls, whatever the module's name is. A with statement is its first line here."""
    match statement:
        case ast.With():
            calls = [item.context_expr for item in statement.items]
        case ast.Expr(value) | ast.Assign(value=value) | ast.Return(ast.expr() as value):
            calls = [value]
        case _:
            return False
    parts = [part for each in calls for part in ast.walk(each)]
    return all(isinstance(each, ast.Call) for each in calls) and not any(_may_ask(part) for part in parts)


def _may_ask(part: ast.AST) -> bool:
    return isinstance(part, ast.BoolOp | ast.IfExp | ast.comprehension) or (
        isinstance(part, ast.Name) and part.id == "__name__"
    )


def _lines_of_the_main_module() -> list[int]:
    """Return the lines at which the main module's code stands now, its own last; none if the launch was not called from
    there, or through code of this module that reads its name. Code that exec runs in it has lines of its own."""
    main = sys.modules[_MAIN].__dict__
    lines = list[int]()
    frame: FrameType | None = sys._getframe()
    while frame:
        code = frame.f_code
        if frame.f_globals is main:
            is_of_the_file = code.co_filename == main.get("__file__")
            if is_of_the_file:
                lines.append(frame.f_lineno)
            if is_of_the_file and code.co_name == "<module>":
                return lines
            if "__name__" in code.co_names:
                return []
        frame = frame.f_back
    return []


def _is_guard(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ast.Name("__name__"), [ast.Eq()], [ast.Constant("__main__")]):
            return True
        case ast.Compare(ast.Constant("__main__"), [ast.Eq()], [ast.Name("__name__")]):
            return True
        case _:
            return False


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module may bind."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for each in ast.iter_child_nodes(statement):
        if isinstance(each, ast.stmt):
            yield from _bound(each)
        else:
            yield from (name.id for name in ast.walk(each) if isinstance(name, ast.Name) and _is_bound(name))
            if isinstance(each, ast.alias):
                yield (each.asname or each.name).partition(".")[0]
            if isinstance(each, ast.ExceptHandler | ast.match_case):
                for inner in each.body:
                    yield from _bound(inner)


def _is_bound(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _statements(statement: ast.stmt) -> Sequence[ast.stmt]:
    """Return the statements in this one that run whenever it does. An exception that is handled may skip the later ones."""
    match statement:
        case ast.With(body=body) | ast.ClassDef(body=body) | ast.FunctionDef(body=body):
            return body
        case ast.Try(body, handlers, _, last):
            return [*(body[:1] if handlers else body), *last]
        case _:
            return ()
