"""A host without a free thread: no thread is started without a guard for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("adapters", "cli")
MAKERS = {"threading.Timer", "_thread.start_new_thread", "ThreadPoolExecutor", "ThreadingHTTPServer", "ThreadingMixIn"}
GUARDED_OTHERWISE = {
    "adapters/bounded_server.py": "a mix-in that starts its threads by threads.start",
    "adapters/simulations/campaign.py": "a worker of the simulator, on which no job depends",
    "adapters/store/relay/agents_here.py": "a command, which asks one agent after the other if it has no thread",
    "adapters/store/tcpstore/store_host.py": "the store's helper, whose parent says that it did not come up",
}
"""Files that start threads by themselves, each with the reason why that is all right."""


def raw_starts(tree: ast.Module) -> Iterator[int]:
    """Yield the lines on which a thread starts past `threads.start`."""
    made = {
        ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "threading.Thread(" in ast.unparse(node.value)
        for target in node.targets
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "start":
            started = ast.unparse(node.func.value)
            if started in made or started == "thread" or started.startswith("threading.Thread("):
                yield node.lineno
        elif isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in MAKERS:
            yield node.lineno


def test_no_thread_starts_without_a_guard_against_a_shortage() -> None:
    found = {
        str(file.relative_to(ROOT)): lines
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        if file != ROOT / "adapters" / "threads.py" and (lines := list(raw_starts(ast.parse(file.read_text()))))
    }
    assert found.keys() <= GUARDED_OTHERWISE.keys(), "start it by adapters/threads.py, and catch NoThread"
    assert all((ROOT / name).exists() for name in GUARDED_OTHERWISE)


def test_no_thread_keeps_a_process_alive_that_is_done() -> None:
    made = [
        (str(file.relative_to(ROOT)), node)
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "threading.Thread"
    ]
    assert len(made) > 5
    for name, call in made:
        assert "daemon=True" in map(ast.unparse, call.keywords), f"{name}:{call.lineno}"


def test_a_start_past_the_guard_is_found() -> None:
    past = "threading.Thread(target=f).start()\nself.it = threading.Thread()\nself.it.start()\nthreads.start(self.it)\n"
    assert list(raw_starts(ast.parse(past))) == [1, 3]
