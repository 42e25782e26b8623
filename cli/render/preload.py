"""The text of `--show-preload`: what standbys import, and what they leave to the workers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from ...adapters.workers.start.script_imports import EarlyImport, Imports, LateImport


def render_imports(imports: Imports, missing: Collection[str]) -> Iterator[str]:
    """Yield the lines. `missing` are the modules of --preload that are not there."""
    here = _here()
    yield "standbys import:" if imports.early else "standbys import nothing"
    yield from _columns(
        (each.statement, _place(each, here) + (" · not found" if each.module in missing else ""))
        for each in imports.early
    )
    if imports.late:
        yield "left to the workers:"
        yield from _columns(
            (each.module, f"{_place(each, here)} · {each.why.removeprefix(here)}") for each in imports.late
        )


def _here() -> str:
    """Return what the files of the working directory begin with; nothing if it was removed."""
    try:
        return f"{os.getcwd()}/"
    except OSError:
        return ""


def _place(each: EarlyImport | LateImport, here: str) -> str:
    """Return the option that names the module, or the line of a file, as one names it in the working directory."""
    return each.file if each.file.startswith("-") else f"{each.file.removeprefix(here)}:{each.line}"


def _columns(pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    rows = list(pairs)
    width = max((len(first) for first, _ in rows), default=0)
    yield from (f"  {first:{width}}  {second}" for first, second in rows)
