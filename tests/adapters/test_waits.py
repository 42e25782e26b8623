"""Whatever may block is bounded: each wait for a process or a thread without a limit is on this list, with what bounds it.

A process that was killed may not die: a debugger holds it, or the kernel does. Waits are found by name: join, wait,
communicate, acquire, a queue's get and a poll's poll without arguments, wait_for with a condition alone, waitpid and waitid
without WNOHANG. Not found: a time-out that is None in a variable, reads of pipes and sockets, `with lock`, files, torch.

And no wait of a test is for a few seconds: for what comes it waits a minute or more, since a machine may stand still for
seconds; and at what does not come it looks for half a second at most. Spans are found by the names in TIME_OUTS, PLACES
and `_time_outs`, as numbers, constants of the same file, and products and quotients of these. Not found: constants of other
files, sums, what is computed while the test runs, `sleep`, loops that look at a clock, pytest's own time-out.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("adapters", "cli", "inprocess")
REGISTERS = ("backend", "client", "self", "watching")
"""The `get` of these asks the store, within its own limit."""
POPENS = ("process", "_helper", "select")
"""The `poll` of these does not wait."""
THREAD = "its thread is told to end, and what it may wait for is bounded or closed"
QUEUE = "a thread of its own: a last item ends it, and whoever joins it has a limit or is on this list"
THERE = "the queue is not empty, and nobody else takes from it"
DEAD = "the process is dead, and nobody else traces it: the kernel says so"
LAST = "its thread has said that it is over, as its last act"
BOUNDED = {
    "adapters/bounded_server.py:close": THREAD,
    "adapters/disk.py:_run": QUEUE,
    "adapters/inprocess/wrapper/assembly.py:carry_through": "the driver's join",
    "adapters/inprocess/rank/driver.py:_await_store": "`_greet`, which ends after store_timeout and always posts",
    "adapters/inprocess/rank/driver.py:join": "the limits of the call",
    "adapters/inprocess/beside/monitor.py:_look": THERE,
    "adapters/inprocess/rank/register_follower.py:stop": THREAD,
    "adapters/inprocess/beside/supervisor.py:close": THREAD,
    "adapters/pidfds.py:_wait": "a thread that does nothing else, and that nobody waits for",
    "adapters/rendezvous/links.py:stop": THREAD,
    "adapters/rendezvous/loop.py:_next": THERE,
    "adapters/rendezvous/loop.py:_wait_for_changes": QUEUE,
    "adapters/rendezvous/loop.py:stop": THREAD,
    "adapters/rendezvous/operator.py:asked": "the deadline of the operation",
    "adapters/rendezvous/stall_detector.py:stop": THREAD,
    "adapters/report/end_reader.py:_posted": THERE,
    "adapters/report/end_reader.py:_run": QUEUE,
    "adapters/report/stack_records.py:_run": QUEUE,
    "adapters/report/telemetry_spans.py:_send": QUEUE,
    "adapters/report/telemetry_spans.py:_send 2": THERE,
    "adapters/report/trace_file.py:_next": QUEUE,
    "adapters/simulations/campaign.py:_ends_with_its_parent": "a worker of the simulator, which ends with its parent",
    "adapters/store/relay/relay_session.py:_stop_waiting": THREAD,
    "adapters/store/relay/relay_session.py:join": "no wait: a client joins a register",
    "adapters/store/tcpstore/helper_watch.py:_buried": "StoreHost.wait, which is bounded",
    "adapters/store/tcpstore/helper_watch.py:close": THREAD,
    "adapters/store/tcpstore/store_host.py:_serve_rounds": "the helper itself: its agent kills it",
    "adapters/store/tcpstore/store_host.py:_wait_until_idle": "the helper itself: its agent kills it",
    "adapters/store/tcpstore/wire.py:_hears_within": "`abort`, by another thread, where no time-out is given",
    "adapters/torch/telemetry.py:_run": QUEUE,
    "adapters/torch/torchrun_plugin.py:_asked": "the deadline of the operation",
    "adapters/web_server.py:_wait": "the end of the client or of the server, which notifies",
    "adapters/workers/start/forks.py:_heard": "the import of the user's code, and the server's death; later a time-out",
    "adapters/workers/start/function.py:_kill_descendants": "the server itself: its agent kills it after a while",
    "adapters/workers/output/log_file.py:_run": QUEUE,
    "adapters/workers/start/node_check.py:_watched": "a thread that the end waits for within a time; the command has ended",
    "adapters/workers/output/pump.py:_files_closed": THERE,
    "adapters/workers/start/spawner.py:_reaped": DEAD,
    "adapters/workers/start/spawner.py:_reaped 2": DEAD,
    "cli/api/job.py:__init__": LAST,
    "cli/api/job.py:_ends_within": LAST,
}

LOOK_S, WAIT_S = 0.5, 60.0
TIME_OUTS = ("timeout", "timeout_s", "within_s", "span_s")
PLACES = {
    **dict.fromkeys(("acquire", "exception", "join", "reap", "result", "settimeout", "wait"), 0),
    **dict.fromkeys(("_ends_within", "ends_within", "is_done_within"), 0),
    **dict.fromkeys(("WireClient", "comes_true", "create_connection", "died_within", "dies", "says_within"), 1),
    **dict.fromkeys(("hears", "prints", "says", "stands_by", "wait_for"), 1),
    **dict.fromkeys(("HTTPConnection", "HTTPSConnection"), 2),
    "select": 3,
}
"""Which argument of a call is its time-out, where that has no name."""
PROGRAMS = "programs"
"""What tests run under a launcher: a program that loses patience begins its next round."""
SHORT = {
    "tests/etcd_clients.py: 1.0": "who is not answered asks again",
    "tests/peer/torchnode.py: 30.0": "in simulated time",
    "tests/adapters/inprocess/beside/test_monitor.py: 5.0": "so long does the host stand still",
    "tests/e2e/test_hostile_store.py: 0.7": "a heartbeat, and the warning comes after one of many",
    "tests/e2e/test_store_host_dies.py: 9.0": "nobody gives up who makes progress, for three times the join_timeout",
    "tests/e2e/test_outsiders.py: 1.0": "nobody drains who should not, for two heartbeats",
    "tests/e2e/test_outsiders.py: 3.0": "nobody answers who should not, for several heartbeats",
}


def endless(node: ast.AST, scope: str = "") -> Iterator[tuple[str, int]]:
    """Yield the waits without a limit: the innermost function that has each, and its line."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _is_endless(child):
            yield scope, child.lineno
        yield from endless(child, child.name if isinstance(child, ast.FunctionDef) else scope)


def _is_endless(call: ast.Call) -> bool:
    name, arguments = ast.unparse(call.func), [ast.unparse(each) for each in (*call.args, *call.keywords)]
    if name in ("os.waitpid", "os.waitid"):
        return "WNOHANG" not in " ".join(arguments)
    of, _, method = name.rpartition(".")
    match method if (of := of.rpartition(".")[2]) else "":
        case "join" | "wait" | "communicate" | "acquire":
            return not arguments
        case "wait_for":
            return len(arguments) == 1
        case "get":
            return not arguments and of not in REGISTERS
        case "poll":
            return of not in POPENS and (not arguments or arguments[0].startswith("None"))
        case _:
            return False


def waited_for(tree: ast.Module) -> Iterator[float]:
    """Yield the time-outs of calls and functions that are numbers, or constants of this file."""
    known = {
        ast.unparse(target): each.value
        for each in tree.body
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
    }
    for node in ast.walk(tree):
        for given, unit_s in _time_outs(node):
            if (number := _number(given, known)) is not None:
                yield number * unit_s


def _number(given: ast.expr | None, known: Mapping[str, ast.expr]) -> float | None:
    match given:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.Name(name):
            return _number(known.get(name), {})
        case ast.BinOp(left, ast.Mult() | ast.Div() as how, right):
            one, other = _number(left, known), _number(right, known)
            if one is None or other is None:
                return None
            return one * other if isinstance(how, ast.Mult) else one / other
        case _:
            return None


def _time_outs(node: ast.AST) -> Iterator[tuple[ast.expr, float]]:
    """Yield what is given for a time-out, and its unit in seconds."""
    match node:
        case ast.Call(func, args, keywords):
            yield from ((each.value, 1.0) for each in keywords if each.arg in TIME_OUTS)
            match ast.unparse(func).rpartition(".")[2], args:
                case "poll", [span_ms]:
                    yield span_ms, 0.001
                case "get", [ast.Constant(bool()), span_s]:
                    yield span_s, 1.0
                case name, _:
                    place = PLACES.get(name, len(args))
                    yield from ((each, 1.0) for each in args[place : place + 1])
        case ast.arguments(args=args, defaults=defaults) if defaults:
            pairs = zip(args[-len(defaults) :], defaults, strict=True)
            yield from ((default, 1.0) for each, default in pairs if each.arg in TIME_OUTS)


def test_no_wait_for_a_process_or_a_thread_is_endless() -> None:
    seen, found = Counter[str](), set[str]()
    for file in sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        for scope, _ in endless(ast.parse(file.read_text())):
            name = f"{file.relative_to(ROOT)}:{scope}"
            seen[name] += 1
            found.add(name if seen[name] == 1 else f"{name} {seen[name]}")
    assert found == BOUNDED.keys()


def test_an_endless_wait_is_found_however_it_is_written() -> None:
    text = (
        "def f():\n thread.join()\n x.join(1)\n it.process.wait()\n os.waitpid(1, 0)\n"
        " os.waitid(os.P_PID, 1, os.WEXITED | os.WNOHANG)\n lock.acquire()\n ','.join(x)\n"
        " def g():\n  self.changed.wait_for(has_come)\n self.changed.wait_for(has_come, 1)\n queue.get()\n"
        " backend.get()\n found.get(1)\n poll = select.poll()\n poll.poll()\n poll.poll(None if x else 1)\n"
        " poll.poll(1)\n process.poll()\n"
    )
    lines = [("f", 2), ("f", 4), ("f", 5), ("f", 7), ("g", 10), ("f", 12), ("f", 16), ("f", 17)]
    assert list(endless(ast.parse(text))) == lines


def test_no_wait_of_a_test_is_for_seconds_that_a_machine_may_stand_still() -> None:
    files = (file for room in ("tests", "property_tests") for file in sorted((ROOT / room).rglob("*.py")))
    short = {
        f"{file.relative_to(ROOT)}: {span_s}"
        for file in files
        if file.parent.name != PROGRAMS
        for span_s in waited_for(ast.parse(file.read_text()))
        if LOOK_S < span_s < WAIT_S
    }
    assert short == SHORT.keys(), "wait for what happens, a minute at least, or look for a moment"


def test_a_time_out_is_found_however_it_is_written() -> None:
    text = (
        "A_S = 3.0\nB_S: Final = 4\ndef f(x, timeout_s=5.0):\n x.wait(6)\n x.join(A_S)\n queue.get(timeout=B_S)\n"
        " comes_true(lambda: True, 7.0)\n select.select([x], [], [], 8.0)\n run(x, timeout=3 * A_S)\n found.get(x, other)\n"
        " it.says_within(x, 10.0)\n queue.get(True, 11)\n poll.poll(12_000)\n HTTPConnection(h, p, 13.0)\n"
        " it.ends_within(14.0)\n it.is_done_within(span_s=A_S * 10 / 2)\n found.get(x, 16)\n"
        " run(x, timeout=17 * ELSEWHERE_S)\n"
    )
    assert sorted(waited_for(ast.parse(text))) == [*range(3, 16)]
