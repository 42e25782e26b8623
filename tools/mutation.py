"""Put bugs into the core, one at a time, and tell what finds each of them.

The mutants are rows of property_tests/mutants.toml. Each mutant runs in a forked process of its own, and nothing is written.
There the functions that it changes are given their new code where they are (`patched`). If it changes something else, or is
not killed so, the modules that it changes, and those that import them, are imported anew with the changed text (`mutate`).

  mutation.py drift            tell which mutants and survivors no longer fit the source; `make lint` does this
  mutation.py check            tell whether its recorded story, or its directed test, kills each mutant; one JSON line each
  mutation.py search           look for a story by which each mutant breaks a property; --record keeps the shortest
  mutation.py table            write docs/mutants.md from what is recorded
"""

from __future__ import annotations

import argparse
import ast
import gc
import inspect
import json
import os
import signal
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import hypothesis  # noqa: F401  loaded once, for all forks
import msgspec  # noqa: F401
import pytest
from attrs import frozen

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "property_tests" / "mutants.toml"
CALLS = ROOT / "property_tests" / "call_mutants.toml"
"""The mutants of restarts inside the process (callmutants.py)."""
SURVIVORS = ROOT / "property_tests" / "survivors.toml"
RECORDED = ROOT / "property_tests" / "mutants"
DOCUMENT = ROOT / "docs" / "mutants.md"
TIMEOUT_S = 900
CHECK_S = 60
RUNS = 2_000
PLUGINS = ("--tb=no", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin")
SIMULATORS = (
    "elastic.core.sim.run",
    "elastic.core.sim.story",
    "elastic.core.sim.shrink",
    "elastic.core.sim.calls.walk",
    "elastic.core.sim.calls.nodes_walk",
)
FINDS = 3
"""The search keeps the shortest of so many stories that break something."""

Answer = dict[str, Any]


class Drifted(Exception):
    """A mutant no longer fits the core's text."""


@frozen
class Edit:
    """A change of one file of the core: the text `old` becomes `new`."""

    file: str
    old: str
    new: str


@frozen
class Mutant:
    """A bug. `test` is the directed test that kills it; "" if a recorded story does."""

    name: str
    edits: tuple[Edit, ...]
    test: str

    @property
    def slug(self) -> str:
        return "_".join("".join(letter if letter.isalnum() else " " for letter in self.name.lower()).split())

    @property
    def story(self) -> Path:
        return RECORDED / f"{self.slug}.story"


def mutants(table: Path = TABLE) -> tuple[Mutant, ...]:
    rows = tomllib.loads(table.read_text())["mutant"]
    return tuple(
        Mutant(row["name"], tuple(_edits(row, *([row["also"]] if "also" in row else []))), row.get("test", ""))
        for row in rows
    )


def _edits(*rows: Mapping[str, str]) -> Iterator[Edit]:
    for row in rows:
        yield Edit(row["file"], row["old"], row["new"])


def edited(file: str, edits: Iterable[Edit]) -> str:
    """Return the text of a file of the core with these edits. Raises Drifted."""
    text = place(file).read_text()
    for edit in edits:
        if edit.file == file:
            if text.count(edit.old) != 1:
                raise Drifted(f"{place(file).relative_to(ROOT)}: {text.count(edit.old)} times: {edit.old!r}")
            text = text.replace(edit.old, edit.new)
    return text


def sources(mutant: Mutant) -> Mapping[str, str]:
    """Return the new text of each module that the mutant changes. Raises Drifted."""
    files = dict.fromkeys(edit.file for edit in mutant.edits)
    return {module(file): edited(file, mutant.edits) for file in files}


def drifted(those: Iterable[Mutant]) -> Iterator[str]:
    """Yield a line for each mutant whose text is not there once, or that is no Python (which any test would catch), and for
    each survivor whose line is not there."""
    for mutant in those:
        try:
            for name, text in sources(mutant).items():
                compile(text, name, "exec", dont_inherit=True)
        except (Drifted, SyntaxError) as reason:
            yield f"mutant {mutant.name!r}: {reason}"
    for row in tomllib.loads(SURVIVORS.read_text())["survivor"]:
        line = row["old"] or row["new"]
        if line not in map(str.strip, place(row["file"]).read_text().splitlines()):
            yield f"survivor: {row['file']} has no line {line!r}"


def place(file: str) -> Path:
    """Return the path of a file. It is named as in the core, or from the root as "adapters/clock.py"."""
    return ROOT / file if file.startswith("adapters/") else ROOT / "core" / file


def module(file: str) -> str:
    return ".".join(("elastic", *place(file).relative_to(ROOT).with_suffix("").parts))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        code = compile(self.text, self.path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code


class Mutating(MetaPathFinder):
    """A finder that imports these modules with another text."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in self.texts:
            return None
        spec = PathFinder.find_spec(fullname, path)
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self.texts[fullname])
        return spec


def mutate(texts: Mapping[str, str]) -> None:
    """Let the modules of the package that are imported from now on have these texts. What was imported and would have read
    one of them is imported anew."""
    for name in importers(texts):
        if sys.modules.pop(name, None):
            parent, _, leaf = name.rpartition(".")
            vars(sys.modules.get(parent, ModuleType(parent))).pop(leaf, None)
    sys.meta_path.insert(0, Mutating(texts))


def patched(texts: Mapping[str, str]) -> bool:
    """Give the functions of these modules the code that they have in these texts, and return True. Return False, and change
    nothing, where a text changes more than functions, or functions that are not here."""
    changes: dict[tuple[str, str, int], CodeType] = {}
    for name, text in texts.items():
        path = _path(name)
        if not path:
            return False
        try:
            changed = _changed(_original(path), compile(text, path, "exec"))
        except SyntaxError:
            return False
        if changed is None:
            return False
        changes |= {(path, old.co_qualname, old.co_firstlineno): new for old, new in changed}
    here = _functions()
    found = [(each, key) for key in changes for each in here.get(key, ())]
    if {key for _, key in found} != changes.keys():
        return False
    for function, key in found:
        function.__code__ = changes[key]
    return True


def _path(name: str) -> str:
    """Return the file of a module that is imported here; "" if it is not."""
    return str(getattr(sys.modules.get(name), "__file__", ""))


@cache
def _original(path: str) -> CodeType:
    """Return the code of a file as it is. The parent compiles it for all forks."""
    code = compile(Path(path).read_text(), path, "exec")
    assert isinstance(code, CodeType)
    return code


@cache
def _functions() -> Mapping[tuple[str, str, int], list[FunctionType]]:
    """Return all functions that there are, by their places in the source. `warm` looks for them, for all forks."""
    found = defaultdict[tuple[str, str, int], list[FunctionType]](list)
    for each in gc.get_objects():
        if type(each) is FunctionType:
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


def _changed(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Return the functions in these two texts of a module, or of a class, that differ; None if more than functions does."""
    is_function = bool(old.co_flags & inspect.CO_OPTIMIZED)
    inner, others = _parts(old), _parts(new)
    same = old.co_code == new.co_code and old.co_names == new.co_names and inner[0] == others[0]
    below = [_changed(*pair) for pair in zip(inner[1], others[1], strict=True)] if same else [None]
    if not is_function:
        return None if None in below else [change for those in below for change in those or ()]
    return [] if not any(below) and None not in below else [(old, new)] if _fits(old, new) else None


def _parts(code: CodeType) -> tuple[str, list[CodeType]]:
    """Return a text of the constants of this code, and the codes among them."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    values = repr([type(each) if isinstance(each, CodeType) else each for each in code.co_consts])
    return f"{code.co_name} {code.co_varnames} {code.co_freevars} {code.co_cellvars} {values}", inner


def _fits(old: CodeType, new: CodeType) -> bool:
    return old.co_freevars == new.co_freevars and old.co_name == new.co_name


def warm() -> None:
    """Import what all mutants run, so that a fork imports only what its mutant changes."""
    for name in SIMULATORS:
        import_module(name)
    _ours()
    _functions()


def importers(changed: Iterable[str]) -> set[str]:
    """Return these modules and all of the package that import them, directly or not."""
    imported, found = _ours(), set(changed)
    while more := {name for name, those in imported.items() if name not in found and those & found}:
        found |= more
    return found


@cache
def _ours() -> Mapping[str, frozenset[str]]:
    """Return the modules of the package that are imported here, each with the modules that its text imports."""
    ours = {name: each for name, each in sys.modules.items() if name.partition(".")[0] == "elastic"}
    return {name: frozenset(_imports(each)) & ours.keys() for name, each in ours.items()}


def _imports(each: ModuleType) -> Iterator[str]:
    """Yield all that an import in this module's text may name. In `from a import b` that is a, and a.b too."""
    package = each.__name__ if hasattr(each, "__path__") else each.__name__.rpartition(".")[0]
    for node in ast.walk(ast.parse(Path(str(each.__file__)).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


# --- in the mutant's process


def told(story: str) -> Answer:
    """Return the property that this story breaks, if it breaks any."""
    from elastic.core.sim.run import tell
    from elastic.core.sim.story import parsed

    violation = tell(parsed(story.splitlines())).violation
    return {"number": violation.number, "fact": str(violation)} if violation else {}


def shape(seed: int, features: Sequence[str] = ()) -> Any:
    """Return the shape of the search's run with this seed. Its world has these features. Every second one has two more, each
    pair in turn: by chance some pairs meet in few runs."""
    from elastic.core.sim.features import PAIRS
    from elastic.core.sim.swarm import Shape

    wanted = PAIRS[seed // 2 % len(PAIRS)] if seed % 2 else ()
    return Shape(nodes=2 + seed % 5, features=frozenset((*wanted, *features)))


def searched(runs: int, finds: int, features: Sequence[str] = ()) -> Answer:
    """Return the shortest of the first `finds` stories that break something."""
    from elastic.core.sim.run import wander
    from elastic.core.sim.shrink import shrunk

    best: Answer = {}
    found = 0
    for seed in range(runs):
        run = wander(seed, shape(seed, features))
        if run.violation is None:
            continue
        first = {"seed": seed, "steps": run.world.steps} if not found else {}
        small = shrunk(run)
        found += 1
        assert small.violation is not None
        size = len(small.story.operations)
        if found == 1 or size < best["size"]:
            best |= {
                "number": small.violation.number,
                "fact": str(small.violation),
                "size": size,
                "story": str(small.story),
            }
        best |= first
        if found == finds:
            break
    return best


def tested(test: str) -> Answer:
    """Return the name of a directed test if it fails."""
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # to look for plug-ins takes longer than most tests
    gc.freeze()  # pytest collects twice at its end, which would go through all that the parent has imported
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *PLUGINS, test])
    return {"test": test} if code == pytest.ExitCode.TESTS_FAILED else {}


def in_a_fork(does: Callable[[], Answer], timeout_s: int = TIMEOUT_S) -> Answer:
    """Call this in a forked process and return its answer. An error and a timeout are answers too."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(timeout_s)
        try:
            answer = does()
        except Drifted as drifted:
            answer = {"drifted": str(drifted)}
        except BaseException as error:  # noqa: BLE001  whatever a mutant does
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"error": f"no answer in {timeout_s} s"}


def in_a_mutant(mutant: Mutant, does: Callable[[], Answer], timeout_s: int = TIMEOUT_S) -> Answer:
    """Call this in a forked process with the mutant, and return the answer that kills it, or else the last."""

    def quick() -> Answer:
        return does() if patched(sources(mutant)) else {}

    def slow() -> Answer:
        mutate(sources(mutant))
        return does()

    for path in filter(None, (_path(module(edit.file)) for edit in mutant.edits)):
        _original(path)
    answer = in_a_fork(quick, timeout_s)
    return answer if answer.get("number") or answer.get("test") else in_a_fork(slow, timeout_s)


# --- in the parent


def check(those: Iterable[Mutant]) -> Iterator[Answer]:
    """Yield what kills each mutant now."""
    warm()
    for mutant in those:

        def killed(mutant: Mutant = mutant) -> Answer:
            return tested(mutant.test) if mutant.test else told(mutant.story.read_text())

        yield {"mutant": mutant.name} | in_a_mutant(mutant, killed, CHECK_S)


def search(
    those: Iterable[Mutant], runs: int, finds: int, record: bool, features: Sequence[str] = ()
) -> Iterator[Answer]:
    """Yield the story found for each mutant, in worlds that have these features; `record` also writes it down."""
    warm()
    for mutant in those:

        def mutated(mutant: Mutant = mutant) -> Answer:
            mutate(sources(mutant))
            return searched(runs, finds, features)

        began = time.monotonic()
        answer = in_a_fork(mutated)
        if record and "story" in answer:
            RECORDED.mkdir(exist_ok=True)
            mutant.story.write_text(f"# {mutant.name}\n# {answer['fact']}\n{answer['story']}\n")
        yield {"mutant": mutant.name, "s": round(time.monotonic() - began, 1)} | answer


# --- in words


def number_of(mutant: Mutant) -> str:
    """Return the property that the mutant's recorded story breaks."""
    return mutant.story.read_text().splitlines()[1].removeprefix("# ").partition(":")[0]


def operations_of(mutant: Mutant) -> int:
    """Return the number of operations of the mutant's recorded story."""
    return sum(1 for line in mutant.story.read_text().splitlines() if not line.startswith("#")) - 1


def shares(those: Iterable[Mutant]) -> Mapping[str, tuple[int, int]]:
    """Return for each room how many of its mutants the simulator kills without any unit test, and how many there are."""
    counts: dict[str, tuple[int, int]] = {}
    for each in those:
        room = place(each.edits[0].file).relative_to(ROOT).parent.as_posix()
        alone, all = counts.get(room, (0, 0))
        counts[room] = alone + (not each.test), all + 1
    return dict(sorted(counts.items()))


def document(those: Iterable[Mutant]) -> str:
    """Return the text of docs/mutants.md: which property kills which mutant, and how long its story is. One more mutant
    changes its own row and the count of its room, so that two branches that add some seldom touch the same lines."""
    those, of_calls = list(those), mutants(CALLS)
    quiet = tomllib.loads(TABLE.read_text())["quiet"]
    return "\n".join(
        [
            "# Which property kills which mutant",
            "",
            "Generated by `.venv/bin/python tools/mutation.py table`, from property_tests/mutants.toml and the stories",
            "beside it; `tools/mutation.py search --record` looks for the stories anew. A mutant is killed by a story that",
            "breaks the property that is named, or by a directed test. A story's length is its number of operations, with",
            "`pass`; 0: the mutant breaks a property in a world to which nothing is done.",
            "[protocol.md](protocol.md#properties) defines the properties.",
            "",
            "The first table also counts the mutants of restarts inside the process (property_tests/call_mutants.toml). For",
            "those the simulator is `elastic simulate --calls`.",
            "",
            "| mutants of | by the simulator alone | of |",
            "| --- | --- | --- |",
            *(
                f"| {room} | {alone} ({alone / all:.0%}) | {all} |"
                for room, (alone, all) in shares([*those, *of_calls]).items()
            ),
            "",
            "| killed by | mutant | file | operations |",
            "| --- | --- | --- | --- |",
            *sorted(map(_row, those)),
            "",
            "## Properties that kill no mutant",
            "",
            "A property that catches no mutant is suspect. This is why each of these is kept.",
            "",
            *(f"- **{number}**: {reason}" for number, reason in sorted(quiet.items())),
            "",
        ]
    )


def _row(mutant: Mutant) -> str:
    files = ", ".join(dict.fromkeys(edit.file for edit in mutant.edits))
    if mutant.test:
        return f"| {mutant.test.replace('::', ' · ')} | {mutant.name} | {files} | |"
    return f"| {number_of(mutant)} | {mutant.name} | {files} | {operations_of(mutant)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["drift", "check", "search", "table"])
    parser.add_argument(
        "--only", nargs="*", default=(), metavar="NAME", help="as in the table, or as its story is called"
    )
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--finds", type=int, default=FINDS)
    parser.add_argument("--record", action="store_true")
    parser.add_argument(
        "--with", nargs="*", default=(), metavar="FEATURE", dest="features", help="of the worlds searched"
    )
    asked = parser.parse_args()
    those = [each for each in mutants() if not asked.only or each.name in asked.only or each.slug in asked.only]
    if asked.what == "drift":
        sys.exit("\n".join(drifted((*those, *mutants(CALLS)))) or None)
    if asked.what == "table":
        DOCUMENT.write_text(document(those))
        return
    answers = (
        check(those) if asked.what == "check" else search(those, asked.runs, asked.finds, asked.record, asked.features)
    )
    alive = list[str]()
    for mutant, answer in zip(those, answers, strict=True):
        print(json.dumps(answer), flush=True)
        if not ("number" in answer or "test" in answer or (asked.what == "search" and mutant.test)):
            alive.append(mutant.name)
    if alive:
        sys.exit(f"alive: {', '.join(alive)}")


if __name__ == "__main__":
    main()
