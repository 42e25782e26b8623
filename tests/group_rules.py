"""What every step of a worker group must keep (protocol.md §5), whatever events come in whatever order."""

from __future__ import annotations

from agents import Broken
from attrs import define, field

from elastic.core.group import MOVES, Group, Phase
from elastic.core.group.state import (
    SIGKILL,
    Close,
    Command,
    End,
    Event,
    Join,
    Leave,
    MarkDone,
    Record,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
)
from elastic.core.world import WorldId

ORDER = (Record, RecordUnstartable, End, Close, Leave, Signal)
"""What the others must know comes before our own workers are stopped."""


@define
class Judge:
    """Watches one group from its first step."""

    started: set[WorldId] = field(factory=set)

    def step(self, before: Group, event: Event, after: Group, commands: tuple[Command, ...], at: float) -> None:
        for number, holds in self._facts(before, event, after, commands, at).items():
            if not holds:
                raise Broken(f"{number}: {before.phase.name} + {event} -> {after.phase.name}: {commands}")
        self.started |= {command.world.id for command in commands if isinstance(command, Start)}

    def _facts(
        self, before: Group, event: Event, after: Group, commands: tuple[Command, ...], at: float
    ) -> dict[str, bool]:
        kinds = [type(command) for command in commands]
        ranked = [ORDER.index(kind) for kind in kinds if kind in ORDER]
        stays = after.phase is before.phase
        is_second_signal = isinstance(event, Signalled) and before.phase is Phase.LEAVING
        starts = [command.world.id for command in commands if isinstance(command, Start)]
        return {
            "the table of moves": stays or after.phase in MOVES.get((before.phase, type(event)), ()),
            "S17, once per world": not self.started & set(starts),
            "F1, a start is not fenced at once": not starts or after.fence_at is None or self._is_late(after, at),
            "nobody joins with a worker alive": Join not in kinds or not after.running,
            "workers start in a world only": not starts or (after.phase is Phase.RUNNING and bool(after.running)),
            "fault, end, signal: in this order": ranked == sorted(ranked),
            "a failure ends the round": Record not in kinds or End in kinds or before.phase is Phase.STOPPING,
            "done when all have succeeded": MarkDone not in kinds or not after.running,
            "ended is final": before.phase is not Phase.ENDED or (after == before and not commands),
            "nothing lives in the end": after.phase is not Phase.ENDED or not after.running,
            "a second signal kills": not (is_second_signal and before.running) or Signal(SIGKILL) in commands,
            "nobody is signalled who is dead": Signal not in kinds or bool(before.running),
            "who stops or leaves has a way out": self._has_a_way_out(after),
        }

    def _is_late(self, group: Group, at: float) -> bool:
        return group.fence_at is None or group.fence_at - at >= group.settings.ttl / 4

    def _has_a_way_out(self, group: Group) -> bool:
        """A leaving node waits for the register or for workers, each with an end."""
        if group.phase is not Phase.LEAVING:
            return True
        return group.left or group.until is not None
