"""The text of `--show-preload`: what standbys import, and what they leave to the workers."""

from __future__ import annotations

from collections.abc import Iterator

from ...adapters.workers.script_imports import Imports


def render_imports(imports: Imports) -> Iterator[str]:
    """Yield the lines."""
    yield "standbys import:" if imports.early else "standbys import nothing"
    yield from _columns((each.statement, f"{each.file}:{each.line}") for each in imports.early)
    if imports.late:
        yield "left to the workers:"
        yield from _columns((each.module, f"{each.file}:{each.line} · {each.why}") for each in imports.late)


def _columns(pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    rows = list(pairs)
    width = max((len(first) for first, _ in rows), default=0)
    yield from (f"  {first:{width}}  {second}" for first, second in rows)
