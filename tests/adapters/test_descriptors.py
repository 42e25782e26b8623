"""Each descriptor that is duplicated has an owner that closes it, whatever fails in between."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("adapters", "cli")
MAKERS = {"os.dup", "os.dup2", "socket.dup", "socket.fromfd", "fcntl.F_DUPFD", "fcntl.F_DUPFD_CLOEXEC", "F_DUPFD"}
OWNERS = {
    "adapters/inprocess/shared_page.py": "the page's close, and the supervisor's",
    "adapters/inprocess/rank/torch_sockets.py": "_tcp closes it, also if it is no socket",
    "adapters/kernel.py": "who tries the call closes what it returns",
    "adapters/rendezvous/reserved_ports.py": "who is to listen, which closes it when it serves the next round",
    "adapters/store/tcpstore/helper_watch.py": "the watch, and the helper that is given the other one",
    "adapters/workers/output/console.py": "the console's close",
    "adapters/workers/start/function.py": "the worker's standard streams, which live as long as the process",
    "adapters/workers/startup/elastic_standby.py": "the control socket, closed at go; the worker's standard streams",
    "adapters/workers/startup/sitecustomize.py": "the descriptor of the stacks, which lives as long as the process",
    "cli/main.py": "the command's standard streams, which live as long as the process",
}
"""Files that duplicate descriptors, each with the owner of the duplicate."""


def duplications(tree: ast.Module) -> Iterator[int]:
    """The lines on which a descriptor is duplicated, by a function or by a socket's own method."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.Attribute) and (ast.unparse(node) in MAKERS or node.attr == "dup")) or (
            isinstance(node, ast.Name) and node.id in {"dup", "dup2", "fromfd", "F_DUPFD", "F_DUPFD_CLOEXEC"}
        ):
            yield node.lineno


def test_no_descriptor_is_duplicated_without_an_owner() -> None:
    found = {
        str(file.relative_to(ROOT)): lines
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        if (lines := list(duplications(ast.parse(file.read_text()))))
    }
    assert found.keys() == OWNERS.keys(), f"name the owner here that closes each duplicate: {found}"


def test_a_duplication_is_found_however_it_is_written() -> None:
    text = (
        "os.dup(1)\nit.dup()\nsocket.fromfd(1, 2, 3)\nfcntl.fcntl(1, fcntl.F_DUPFD, 0)\ndup2(1, 2)\nos.open('x', 0)\n"
    )
    assert list(duplications(ast.parse(text))) == [1, 2, 3, 4, 5]
