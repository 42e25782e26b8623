"""A launcher whose agent was refused, since a dead start of its slot was later than it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import define, field
from worlds import arrived, node, register

from elastic.adapters.clock import SystemClock
from elastic.adapters.report.launch_report import Result
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.cli import launch
from elastic.core.group.state import Refused
from elastic.core.world import COUNT_MAX, Node, Why


class Client(MemoryBackend):
    """Tells if it was closed."""

    is_closed = False

    def close(self) -> None:
        super().close()
        self.is_closed = True


@define
class Ended:
    """An agent that was refused, since the last start of its slot is dead."""

    node: Node
    dead: str
    failures: list[Exception] = field(factory=list)
    report_path: None = None
    gone_by: None = None

    def run(self) -> Result:
        return Result(self.node, Refused(Why.BEHIND, "", 0.0), (), arrived(register("1:3"), self.dead))


@pytest.mark.parametrize(("dead", "heirs"), [("a#5", ["a#7"]), (f"a#{COUNT_MAX}", [])], ids=["5", "the last one"])
def test_a_dead_start_is_succeeded_by_a_client_of_its_own_that_is_closed(
    dead: str, heirs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clones, made = list[Client](), list[Node]()
    first = Client(MemoryStore(), SystemClock())

    def clone(client: Client) -> Client:
        clones.append(Client(MemoryStore(), SystemClock()))
        return clones[-1]

    def make(backend: Client, heir: Node | None = None) -> Ended:
        assert not backend.is_closed
        if heir:
            made.append(heir)
        return Ended(heir or node("a"), dead)

    monkeypatch.setattr(Client, "clone", clone)
    settings: Any = None
    launch._run(make, settings, first, [], lambda text: None)  # type: ignore[arg-type]
    assert made == [node(each) for each in heirs]
    assert [client.is_closed for client in clones] == [True] * len(heirs)
    assert not first.is_closed
