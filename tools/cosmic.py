"""Make every small change that cosmic-ray's operators know in the core, and tell which ones no test notices.

cosmic-ray's own runner writes each mutant into the working tree and starts the tests anew. Here a process that has loaded
all else is forked, and imports the core with the changed text. So nothing is written, and it is five times as fast.

Each mutant meets the tests of its own file, then all tests of the core's machines, then the simulator. A change that
survives must stand in property_tests/survivors.toml, with the reason why nothing can notice it.

  cosmic.py [FILE]…      files of the core, as "rendezvous/apply.py"; all when none is named
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping

import hypothesis  # noqa: F401  loaded once, for all forks
import msgspec  # noqa: F401
import pytest
from attrs import frozen
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from mutation import ROOT, Answer, in_a_fork, module, mutate

TIMEOUT_S = 90
MEMORY_MAX = 4 << 30
SEEDS = 150
NOTHING = "nothing"
CORE = ROOT / "core"
SURVIVORS = ROOT / "property_tests" / "survivors.toml"
RENDEZVOUS, GROUP, CALLS = "tests/core/rendezvous", "tests/core/group", "tests/core/inprocess"
FILES: Mapping[str, tuple[str, ...]] = {
    "rendezvous/apply.py": (f"{RENDEZVOUS}/test_apply.py",),
    "rendezvous/handlers.py": (f"{RENDEZVOUS}/test_handlers.py",),
    "rendezvous/turn.py": (f"{RENDEZVOUS}/test_turn.py",),
    "rendezvous/memory.py": (f"{RENDEZVOUS}/test_memory.py", f"{RENDEZVOUS}/test_silence.py"),
    "rendezvous/sightings.py": (f"{RENDEZVOUS}/test_sightings.py",),
    "rendezvous/context.py": (f"{RENDEZVOUS}/test_handlers.py", f"{RENDEZVOUS}/test_turn.py"),
    "rendezvous/agenda.py": (f"{RENDEZVOUS}/test_agenda.py",),
    "group/transition.py": (f"{GROUP}/test_transition.py",),
    "rendezvous/verify.py": (f"{RENDEZVOUS}/test_verify.py",),
    "ranks.py": ("tests/core/test_ranks.py",),
    "rendezvous/state.py": (f"{RENDEZVOUS}/test_state.py", f"{RENDEZVOUS}/test_apply.py"),
    "group/state.py": (GROUP,),
    "rendezvous/settings.py": (f"{RENDEZVOUS}/test_settings.py",),
    "rendezvous/operations.py": (f"{RENDEZVOUS}/test_agenda.py",),
    "rendezvous/codec.py": (f"{RENDEZVOUS}/test_codec.py",),
    "rendezvous/explain.py": (f"{RENDEZVOUS}/test_explain.py",),
    "rendezvous/actions.py": (f"{RENDEZVOUS}/test_apply.py",),
    "group/table.py": (f"{GROUP}/test_table.py",),
    "inprocess/transition.py": (f"{CALLS}/test_transition.py",),
    "inprocess/state.py": (f"{CALLS}/test_transition.py",),
    "inprocess/verify.py": (f"{CALLS}/test_verify.py",),
    "inprocess/timers.py": (f"{CALLS}/test_progress_limits.py",),
    "inprocess/progress_limits.py": (f"{CALLS}/test_progress_limits.py",),
    "inprocess/monitoring.py": (f"{CALLS}/test_monitoring.py",),
    "inprocess/settings.py": (f"{CALLS}/test_settings.py",),
    "policies.py": ("tests/core/test_policies.py",),
    "caller.py": ("tests/core/test_caller.py",),
}
"""The files in order of importance, each with the tests that meet its mutants first."""
ALL = (
    RENDEZVOUS,
    GROUP,
    "tests/core/test_ranks.py",
    "tests/core/test_node.py",
    "tests/core/test_world.py",
    "tests/stories",
)
OF_CALLS = (CALLS, "tests/core/test_policies.py", "tests/core/test_caller.py", "tests/core/sim/test_calls.py")
"""The tests that mutants of a restart inside the process meet instead of ALL."""
PASSED_OVER = ("Is_Eq", "IsNot_NotEq", "VariableReplacer", "VariableInserter")
"""Operators that are not used. For None and enumerations `==` says the same as `is`; the other two need a name."""
PYTEST = (
    *("-x", "-q", "--rootdir", str(ROOT), "--noconftest", "--assert=plain", "-p", "pytest_timeout", "--timeout=0"),
    *("-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception", "-p", "no:logging"),
)
"""pytest without what takes time and finds nothing."""


@frozen
class Change:
    """One mutant: what an operator makes of a line."""

    file: str
    line: int
    old: str
    new: str
    text: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The name of the change in survivors.toml. It stays the same when the line moves."""
        return self.file, self.old, self.new


def changes(file: str) -> Iterator[Change]:
    """Yield the changes of a file that change what it does: it is still Python, and not only an annotation differs."""
    text = (CORE / file).read_text()
    meaning = _meaning(text)
    for name in operator_names():
        if name.endswith(PASSED_OVER):
            continue
        operator, occurrence = get_operator(name), 0
        while (mutated := _mutated(text, operator(), occurrence)) is not None:
            occurrence += 1
            if _meaning(mutated) not in (meaning, None):
                yield Change(file, *_differing(text, mutated), mutated)


def _mutated(text: str, operator: object, occurrence: int) -> str | None:
    """Return the changed text, or None if the operator applies to fewer places.

    cosmic-ray fails on an exception with a dotted name; then the text is returned as it was.
    """
    try:
        mutated: str | None = mutate_code(text, operator, occurrence)
    except AttributeError:
        return text
    return mutated


def _meaning(text: str) -> str | None:
    """Return the syntax tree without annotations; None if the text is not Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return ast.dump(tree)


def _differing(text: str, mutated: str) -> tuple[int, str, str]:
    """Return the number of the first line that differs, the old line and the new one."""
    pairs = zip(text.splitlines(), mutated.splitlines(), strict=False)
    line, old, new = next((line, old, new) for line, (old, new) in enumerate(pairs, 1) if old != new)
    return line, old.strip(), new.strip()


# --- in the mutant's process


def meets(change: Change) -> Answer:
    """Return what notices this change: its own tests, the core's tests, the simulator, or nothing."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    mutate({module(change.file): change.text})
    os.chdir(ROOT)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    if _fails(FILES[change.file]):
        return {"by": "its own tests"}
    of_calls = change.file.startswith(("inprocess/", "policies", "caller"))
    if _fails(OF_CALLS if of_calls else ALL):
        return {"by": "the core's tests"}
    return {"by": "the simulator" if (_calls_break() if of_calls else _breaks()) else NOTHING}


def _fails(tests: tuple[str, ...]) -> bool:
    return pytest.main([*PYTEST, *tests]) != pytest.ExitCode.OK


def _breaks() -> bool:
    from elastic.core.sim.run import wander
    from elastic.core.sim.swarm import Shape

    return any(wander(seed, Shape(nodes=2 + seed % 5)).violation for seed in range(SEEDS))


def _calls_break() -> bool:
    from elastic.core.sim.calls.walk import walked

    return any(walked(seed).broken for seed in range(SEEDS))


# --- in the parent


def survivors() -> Mapping[tuple[str, str, str], str]:
    """Return for each known survivor the reason why nothing can notice it."""
    rows = tomllib.loads(SURVIVORS.read_text())["survivor"]
    return {(row["file"], row["old"], row["new"]): row["why"] for row in rows}


def tried(change: Change, timeout_s: int) -> str:
    """Return what kills the change."""
    answer = in_a_fork(lambda: meets(change), timeout_s)
    return str(answer.get("by", "an error, or no end"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--again", action="store_true", help="only those that are known to survive")
    parser.add_argument("--timeout", type=int, default=TIMEOUT_S, help="of one, in seconds: longer on a busy machine")
    asked = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    known, unknown = survivors(), 0
    for file in asked.files or FILES:
        began, by = time.monotonic(), Counter[str]()
        for change in changes(file):
            if asked.again and change.key not in known:
                continue
            killer = tried(change, asked.timeout)
            if (killer == NOTHING) != (change.key in known):
                unknown += 1
                what = "survives" if killer == NOTHING else "needs no reason"
                print(json.dumps({what: {"file": file, "old": change.old, "new": change.new}}), flush=True)
            by["nothing, with a reason" if killer == NOTHING and change.key in known else killer] += 1
        print(json.dumps({"file": file, "by": by, "s": round(time.monotonic() - began)}), flush=True)
    if unknown:
        sys.exit(f"{unknown} changes are not as {SURVIVORS.relative_to(ROOT)} says")


if __name__ == "__main__":
    main()
