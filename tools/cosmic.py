"""Make every small change that cosmic-ray's operators know in the core and the loops, and tell which ones no test notices.

cosmic-ray's own runner writes each mutant into the working tree and starts the tests anew. Here a process that has loaded
all else is forked, and imports the core with the changed text. So nothing is written, and it is five times as fast.

Each mutant meets the tests of its own file, then all tests of the core's machines, then the simulator. A change that
survives must stand in property_tests/survivors.toml, with the reason why nothing can notice it. The tests of a file must
pass without a change first. A test that does not end, and an error that escapes from a thread, notice a change too.

  cosmic.py [FILE]…      files of the core, as "rendezvous/apply.py", or of the adapters, as "adapters/clock.py"; all if none
  cosmic.py --sample 40 --seed 17 [FILE]…    40 changes of each file, drawn at random; the same seed draws the same ones
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import signal
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from uuid import uuid4

import pytest
from attrs import frozen
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from mutation import ROOT, SURVIVORS, Answer, in_a_fork, module, mutate, place

sys.path.append(str(ROOT / "tests"))
import leftovers

TIMEOUT_S = 90
ENDS_S = 20
"""How long tests that were interrupted may take to end what they started."""
MEMORY_MAX = 4 << 30
SEEDS = 150
NOTHING = "nothing"
RENDEZVOUS, GROUP, CALLS = "tests/core/rendezvous", "tests/core/group", "tests/core/inprocess"
LOOPS, STORES = "tests/adapters/rendezvous", "tests/adapters/store"
TCPSTORE, SEAL, SERVING = (f"{STORES}/tcpstore/test_{name}.py" for name in ("tcpstore", "seal", "serving"))
ETCD, MEMBERS = (f"{STORES}/etcd/test_{name}.py" for name in ("etcd_register", "members"))
QUICK = (
    "not (came_back or workers_run_on or pause_of_the_store or that_dies or more_faults or failures_of_a_run or fell_silent"
    " or renewing_is or only_looks or begins_again_after or lasts_as_long or time_is_over)"
)
"""The tests of a store that do not wait for seconds."""
DEFAULTS = ("tests/test_protocol.py", "-k", "not test_protocol or default_that_the_code_has")
"""The tests that hold the defaults in docs/protocol.md to the code's."""
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
    "inprocess/monitoring.py": (f"{CALLS}/test_monitoring.py", *DEFAULTS),
    "inprocess/settings.py": (f"{CALLS}/test_settings.py", *DEFAULTS),
    "policies.py": ("tests/core/test_policies.py",),
    "caller.py": ("tests/core/test_caller.py",),
    "adapters/rendezvous/loop.py": (f"{LOOPS}/test_loop.py",),
    "adapters/rendezvous/heart.py": (f"{LOOPS}/test_heart.py",),
    "adapters/rendezvous/stall_detector.py": (f"{LOOPS}/test_stall_detector.py",),
    "adapters/rendezvous/reserved_ports.py": (f"{LOOPS}/test_reserved_ports.py",),
    "adapters/store/memory_store.py": (f"{STORES}/test_memory_store.py",),
    "adapters/store/tcpstore/tcpstore.py": (TCPSTORE, SEAL, "-k", QUICK),
    "adapters/store/tcpstore/versions.py": (TCPSTORE, SEAL, "-k", QUICK),
    "adapters/store/tcpstore/wire.py": (TCPSTORE, "-k", QUICK),
    "adapters/store/tcpstore/link.py": (TCPSTORE, "-k", "not (workers_run_on or given_back or TestTCPStoreWithAToken)"),
    "adapters/store/tcpstore/seal.py": (SEAL,),
    "adapters/store/tcpstore/serving.py": (SERVING, "tests/cli/test_store.py"),
    "adapters/store/etcd/etcd_register.py": (
        ETCD,
        MEMBERS,
        "-k",
        f"{QUICK} and not test_members or last_space or failures_of_a_run",
    ),
    "adapters/store/etcd/run_client.py": (ETCD, MEMBERS, "-k", f"{QUICK} and not test_members or leaves_no_doubt"),
    "adapters/store/etcd/run_keys.py": (ETCD, "-k", QUICK),
    "adapters/store/etcd/heartbeats.py": (ETCD, "-k", QUICK),
    "adapters/store/etcd/leases.py": (ETCD, "-k", f"{QUICK} or lasts_as_long or time_is_over"),
    "adapters/store/etcd/members.py": (
        MEMBERS,
        "-k",
        "answered_last or may_take or of_which_nobody or leaves_no_doubt",
    ),
}
"""The files in order of importance, each with the tests that meet its mutants first, as pytest takes them."""
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
    *("-x", "-q", "--rootdir", str(ROOT), "--assert=plain", "-p", "pytest_timeout", "--timeout=0"),
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


def changes(file: str, sample: int | None = None, seed: int = 0) -> Iterator[Change]:
    """Yield the changes of a file that change what it does: it is still Python, and not only an annotation differs.

    With `sample`, yield so many of them, drawn at random.
    """
    text = place(file).read_text()
    names = [name for name in operator_names() if not name.endswith(PASSED_OVER)]
    places = [(name, number) for name in names for number in range(_count(text, name))]
    if sample is not None:
        random.Random(f"{seed} {file}").shuffle(places)
    yield from islice(_made(file, text, places), sample)


def _made(file: str, text: str, places: Iterable[tuple[str, int]]) -> Iterator[Change]:
    meaning = _meaning(text)
    for name, number in places:
        mutated = _mutated(text, name, number)
        if _meaning(mutated) not in (meaning, None):
            yield Change(file, *_differing(text, mutated), mutated)


def _count(text: str, name: str) -> int:
    """Return the number of places to which the operator applies."""
    operator = get_operator(name)()
    return sum(1 for node in ast_nodes(get_ast(text)) for _ in operator.mutation_positions(node))


def _mutated(text: str, name: str, number: int) -> str:
    """Return the changed text. cosmic-ray fails on an exception with a dotted name; then the text is returned as it was."""
    try:
        return mutate_code(text, get_operator(name)(), number) or text
    except AttributeError:
        return text


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
    """Return what notices this change: its own tests, the core's tests, the simulator, or nothing.

    What adapters do with real threads is seen by their own tests only.
    """
    mutate({module(change.file): change.text})
    if _own_fail(change.file):
        return {"by": "its own tests"}
    if change.file.startswith("adapters/"):
        return {"by": NOTHING}
    of_calls = change.file.startswith(("inprocess/", "policies", "caller"))
    if _fails(OF_CALLS if of_calls else ALL):
        return {"by": "the core's tests"}
    return {"by": "the simulator" if (_calls_break() if of_calls else _breaks()) else NOTHING}


def unchanged(file: str) -> Answer:
    """Return what notices a file that is as it was."""
    return {"by": "its own tests"} if _own_fail(file) else {"by": NOTHING}


def _own_fail(file: str) -> bool:
    """Return True if the file's own tests fail, in silence. What has begun is told when they take too long, so that it ends
    the processes that it started."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))
    os.chdir(ROOT)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    signal.signal(signal.SIGALRM, _interrupt)
    threading.excepthook = lambda escaped: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
    return _fails(FILES[file])


def _interrupt(signum: int, frame: object) -> None:
    signal.signal(signum, signal.SIG_DFL)
    signal.alarm(ENDS_S)
    raise KeyboardInterrupt


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
    return _by(lambda: meets(change), timeout_s)


def _by(does: Callable[[], Answer], timeout_s: int) -> str:
    """Return what `does` found in a fork, and end the processes that it left behind."""
    os.environ[leftovers.VARIABLE] = token = uuid4().hex
    answer = in_a_fork(does, timeout_s)
    leftovers.kill(leftovers.alive_with(token), token)
    return str(answer.get("by", "an error, or no end"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--again", action="store_true", help="only those that are known to survive")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="N changes of each file, drawn at random; all without it"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--timeout", type=int, default=TIMEOUT_S, help="of one, in seconds: longer on a busy machine")
    asked = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    known, unknown = survivors(), 0
    for file in asked.files or FILES:
        began, by = time.monotonic(), Counter[str]()
        if _by(lambda file=file: unchanged(file), asked.timeout) != NOTHING:  # type: ignore[misc]
            sys.exit(f"{file}: its own tests fail without a change, or take longer than {asked.timeout} s")
        for change in changes(file, asked.sample, asked.seed):
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
