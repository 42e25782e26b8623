"""The habits of this codebase that a machine can hold: sizes, and phrases that a reader stumbles over.

Each list of exceptions only shrinks: an entry that is no longer needed, or that could be smaller, fails as well.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [path for room in ("core", "adapters", "cli", "inprocess") for path in sorted((ROOT / room).rglob("*.py"))]
FUNCTION_MAX, INIT_MAX, FIELDS_MAX = 60, 40, 15

FUNCTIONS: Mapping[str, int] = {}
"""Functions of more lines than FUNCTION_MAX."""
INITS = {
    "adapters/inprocess/rank/driver.py Driver": 56,
    "adapters/inprocess/wrapper/wrapper.py Wrapper": 104,
    "adapters/store/connection.py TCPStoreConnection": 48,
    "adapters/workers/child_processes.py SubprocessWorkers": 43,
    "core/sim/simulation.py World": 64,
}
"""Classes whose `__init__` has more lines than INIT_MAX."""
FIELDS = {
    "adapters/launch_settings.py LaunchSettings": 29,
    "cli/api/program_settings.py LaunchSettings": 63,
    "cli/launch_options.py LaunchOptions": 65,
    "cli/simulate_options.py SimulateOptions": 20,
    "core/inprocess/settings.py Settings": 24,
    "core/inprocess/state.py Call": 24,
    "core/properties/judge.py Judge": 22,
    "core/properties/pasts.py Past": 22,
    "core/rendezvous/settings.py Settings": 22,
    "core/rendezvous/state.py RendezvousState": 22,
    "core/sim/calls/call_world.py Rank": 24,
    "core/sim/recoveries.py Recoveries": 22,
    "core/sim/simulated_store.py Store": 16,
    "core/sim/story.py Setting": 38,
    "core/sim/witness.py Witness": 19,
    "core/world.py Fault": 19,
}
"""attrs classes of more fields than FIELDS_MAX."""
OTHER_NAMES = {
    "core/properties/pasts.py": 4,
    "core/replay/evidence.py": 2,
    "core/sim/calls/call_world.py": 1,
    "core/sim/calls/node_laws.py": 2,
    "core/sim/calls/over_nodes.py": 4,
    "core/sim/own.py": 1,
    "core/sim/simulation.py": 1,
    "core/sim/sometimes.py": 2,
    "core/sim/story.py": 1,
    "core/sim/workers.py": 1,
    "inprocess/assignments.py": 1,
    "inprocess/state.py": 1,
}
"""How many types a file imports by another name, since it has two of that name, or since the name says too little."""
PHRASES = {
    r"\bso often\b": 0,
    r"\bso many\b": 4,
    r"\bso long\b": 10,
    r"\bthat is no\b": 0,
    r"\bof which\b": 7,
    r"\b(?:is|are) told of\b": 1,
    r"\bwhat befell\b": 1,
    r"\bthread of its own\b": 0,
    r"\bmend(?:s|ed)?\b": 0,
    r"\bfor want of\b": 0,
}
"""Phrases, as patterns, and how many lines of the source still have them. style.md says what to write in their place."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def lines_of(node: ast.AST) -> int:
    return node.end_lineno - node.lineno + 1  # type: ignore[attr-defined, no-any-return]


def long_functions(path: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__":
            yield f"{name(path)} {node.name}", lines_of(node)


def inits(path: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                yield f"{name(path)} {owner.name}", lines_of(node)


def fields(path: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        if any(re.match(r"(attrs\.)?(define|frozen)\b", ast.unparse(each)) for each in node.decorator_list):
            yield f"{name(path)} {node.name}", sum(isinstance(each, ast.AnnAssign) for each in node.body)


@pytest.mark.parametrize(
    ("measured", "most", "listed"),
    [(long_functions, FUNCTION_MAX, FUNCTIONS), (inits, INIT_MAX, INITS), (fields, FIELDS_MAX, FIELDS)],
)
def test_nothing_grows_too_long_and_the_list_of_what_has_only_shrinks(
    measured: object, most: int, listed: Mapping[str, int]
) -> None:
    assert callable(measured)
    found = {key: size for path in FILES for key, size in measured(path, parsed(path)) if size > most}
    grown = {key: size for key, size in found.items() if size > listed.get(key, most)}
    assert grown == {}, f"more than {most}: split it"
    shrunk = {key: found.get(key, 0) for key, size in listed.items() if found.get(key, 0) < size}
    assert shrunk == {}, "it has become smaller: write the smaller number into the list, or take it out"


def test_no_more_types_are_imported_by_another_name() -> None:
    found = Counter[str]()
    for path in FILES:
        froms = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom))
        types = (each for node in froms for each in node.names if re.match(r"[A-Z]\w*[a-z]", each.name))
        found[name(path)] += sum(each.asname not in (None, each.name) for each in types)
    assert +found == OTHER_NAMES, "two types of one name: rename one where it stands; and the list only shrinks"


def test_the_source_has_no_more_of_the_phrases_that_readers_stumble_over() -> None:
    found = Counter(dict.fromkeys(PHRASES, 0))
    for path in FILES:
        for line in path.read_text().splitlines():
            found.update(pattern for pattern in PHRASES if re.search(pattern, line, re.IGNORECASE))
    more = {pattern: count for pattern, count in found.items() if count > PHRASES[pattern]}
    assert more == {}, "say it in the words of shared/style.md"
    fewer = {pattern: count for pattern, count in found.items() if count < PHRASES[pattern]}
    assert fewer == {}, "there are fewer of them: write the smaller number into the list"


def test_a_room_of_torch_that_mypy_leaves_unchecked_is_used_for_what_its_import_does_alone() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    skipped = [room.removesuffix(".*") for each in configured if "follow_imports" in each for room in each["module"]]
    named = re.compile(rf"\b({'|'.join(map(re.escape, skipped))})\b")
    rooms = "core adapters cli inprocess examples benchmarks tests property_tests tools"
    texts = {path: path.read_text() for room in rooms.split() for path in sorted((ROOT / room).rglob("*.py"))}
    del texts[Path(__file__)]
    assert [
        (path.relative_to(ROOT).as_posix(), room) for path, text in texts.items() for room in named.findall(text)
    ] == [
        ("examples/digits/train.py", "torch._dynamo"),
        ("tests/e2e/programs/hangs.py", "torch._meta_registrations"),
        ("tests/quick_torch.py", "torch._meta_registrations"),
    ]
