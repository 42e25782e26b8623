"""Writes the tables of docs/protocol.md#properties from the laws: the number of each, its sentence, and what judges it.

    .venv/bin/python tools/law_tables.py

The code says what judges a law: the modules in whose text a violation of it is made. A row of a number that is no law stays
as it is: S13, for instance, which a test judges. A new law gets a row after the others of its letter.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from elastic.core.properties.law import Law
from elastic.core.sim.calls.call_strength import LAWS as OF_CALLS
from elastic.core.sim.calls.node_laws import LAWS as OVER_NODES
from elastic.core.sim.tally import LAWS

ROOT = Path(__file__).parents[1]
PROTOCOL = ROOT / "docs" / "protocol.md"
NUMBER = re.compile(r"[SVBRLOGFICN][1-9]\d?b?(?: strong)?")
ROW = re.compile(rf"\| ({NUMBER.pattern}) \| .* \| .* \|")
DECLARES = ("Law", "verified")
"""These make a law of a number, and judge nothing."""


def judged(source: str) -> set[str]:
    """Return the numbers that this code reports as broken: names of laws that are functions, first arguments of calls, and
    first items of tuples."""
    found = set[str]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name, decorator_list=[ast.Call(func=ast.Name("law"))]):
                found.add(name.replace("_", " "))
            case ast.Call(func=ast.Name(name)) if name in DECLARES:
                pass
            case ast.Call(args=[ast.Constant(str(number)), *_]) | ast.Tuple(elts=[ast.Constant(str(number)), *_]):
                found.add(number)
            case _:
                pass
    return {each for each in found if NUMBER.fullmatch(each)}


def judges(files: Mapping[str, str]) -> Mapping[str, list[str]]:
    """Return for each number the names of the modules that report it as broken. `files` maps paths to sources."""
    found = defaultdict[str, list[str]](list)
    for module, source in sorted(files.items()):
        for number in judged(source):
            found[number].append(Path(module).stem)
    return found


def written(document: str, laws: Mapping[str, Law], judges: Mapping[str, list[str]]) -> str:
    """Return this document with the rows of these laws."""
    return "".join(_written(document.splitlines(keepends=True), dict(laws), judges))


def _written(lines: list[str], laws: dict[str, Law], judges: Mapping[str, list[str]]) -> Iterator[str]:
    series = ""
    for line in lines:
        row = ROW.fullmatch(line.rstrip("\n"))
        last, series = series, row[1][0] if row else ""
        if series != last:
            new = [number for number in laws if number[0] == last]
            yield from (_row(laws.pop(number), judges) for number in new)
        yield _row(laws.pop(row[1]), judges) if row and row[1] in laws else line


def _row(law: Law, judges: Mapping[str, list[str]]) -> str:
    by = ", ".join(f"`{module}`" for module in judges.get(law.number, ()))
    return f"| {law.number} | {law.sentence} | {by} |\n"


def document() -> str:
    """Return docs/protocol.md as it must be."""
    sources = {str(file): file.read_text() for file in (ROOT / "core").rglob("*.py")}
    return written(PROTOCOL.read_text(), {**LAWS, **OVER_NODES, **OF_CALLS}, judges(sources))


if __name__ == "__main__":
    PROTOCOL.write_text(document())
