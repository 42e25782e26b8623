"""The rules that every step of a worker group keeps, for events in any order (docs/protocol.md#g-and-f-the-worker-group)."""

from __future__ import annotations

from agents import Broken
from attrs import define, field

from elastic.core.group import Group
from elastic.core.group.state import Command, Event, Start
from elastic.core.properties.facts import Stepped
from elastic.core.properties.predicates import of_group
from elastic.core.world import WorldId


@define
class Judge:
    """A judge of one group. It must see every step from the first, those without commands too."""

    started: set[WorldId] = field(factory=set)

    def step(self, before: Group, event: Event, after: Group, commands: tuple[Command, ...], at: float) -> None:
        for number, text in of_group(Stepped(before, event, after, commands, at)):
            raise Broken(f"{number}: {text}")
        starts = {command.world.id for command in commands if isinstance(command, Start)}
        if self.started & starts:
            raise Broken(f"S17: {before.node} starts the workers of a world twice: {commands}")
        self.started |= starts
