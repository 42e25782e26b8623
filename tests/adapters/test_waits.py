"""Whatever may block is bounded: each wait for a process or a thread without a limit is on this list, with what bounds it.

A process that was killed may not die: a debugger holds it, or the kernel does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("adapters", "cli")
THREAD = "its thread is told to end, and what it may wait for is bounded or closed"
DEAD = "the process is dead, and nobody else traces it: the kernel says so"
BOUNDED = {
    "adapters/bounded_server.py:close": THREAD,
    "adapters/inprocess/assembly.py:carry_through": "the driver's join",
    "adapters/inprocess/driver.py:join": "the limits of the call",
    "adapters/inprocess/register_follower.py:stop": THREAD,
    "adapters/inprocess/supervisor.py:close": THREAD,
    "adapters/pidfds.py:_wait": "a thread that does nothing else, and that nobody waits for",
    "adapters/rendezvous/links.py:stop": THREAD,
    "adapters/rendezvous/loop.py:stop": THREAD,
    "adapters/rendezvous/stall_detector.py:stop": THREAD,
    "adapters/simulations/campaign.py:_ends_with_its_parent": "a worker of the simulator, which ends with its parent",
    "adapters/store/relay/relay_session.py:_stop_waiting": THREAD,
    "adapters/store/relay/relay_session.py:join": "no wait: a client joins a register",
    "adapters/store/tcpstore/helper_watch.py:_buried": "StoreHost.wait, which is bounded",
    "adapters/store/tcpstore/helper_watch.py:close": THREAD,
    "adapters/store/tcpstore/store_host.py:_wait_until_idle": "the helper itself: its agent kills it",
    "adapters/store/tcpstore/store_host.py:main": "the helper itself: its agent kills it",
    "adapters/workers/function.py:_kill_descendants": "the server itself: its agent kills it after a while",
    "adapters/workers/node_check.py:_watched": "a thread that the end waits for within a time; the command has ended",
    "adapters/workers/spawner.py:_reaped": DEAD,
}


def endless(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the functions that wait without a limit, each with the line."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef):
            continue
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and _is_endless(node):
                yield scope.name, node.lineno


def _is_endless(call: ast.Call) -> bool:
    name, arguments = ast.unparse(call.func), [ast.unparse(each) for each in (*call.args, *call.keywords)]
    if name in ("os.waitpid", "os.waitid"):
        return "WNOHANG" not in " ".join(arguments)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return not arguments and method in ("join", "wait", "communicate", "acquire")


def test_no_wait_for_a_process_or_a_thread_is_endless() -> None:
    found = {
        f"{file.relative_to(ROOT)}:{name}"
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        for name, _ in endless(ast.parse(file.read_text()))
    }
    assert found == BOUNDED.keys()


def test_an_endless_wait_is_found_however_it_is_written() -> None:
    text = (
        "def f():\n thread.join()\n x.join(1)\n it.process.wait()\n os.waitpid(1, 0)\n"
        " os.waitid(os.P_PID, 1, os.WEXITED | os.WNOHANG)\n lock.acquire()\n ','.join(x)\n"
    )
    assert list(endless(ast.parse(text))) == [("f", 2), ("f", 4), ("f", 5), ("f", 7)]
