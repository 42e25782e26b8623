"""What happened, as one part tells it to another: the rendezvous' loop to the agent, the agent to whoever shows it."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from attrs import frozen

from ..core.group import Group
from ..core.group.state import Command, Event
from ..core.rendezvous import Outcome, Raise, RendezvousState
from ..core.rendezvous.context import Handler
from ..core.world import Fault, World


@frozen
class Told:
    """What came of an operation."""

    handler: Handler
    answer: Outcome | Raise


@frozen
class Recorded:
    """A failure is on record."""

    fault: Fault


@frozen
class Seen:
    """The register as this node now holds it."""

    state: RendezvousState
    at: float


@frozen
class StoreSilent:
    """The store does not answer, or not with a register; whatever must be asked of it waits."""

    text: str
    at: float


@frozen
class StoreBack:
    """It answers again."""

    at: float


Notice: TypeAlias = Told | Recorded | Seen | StoreSilent | StoreBack
"""What the rendezvous' loop tells."""


@frozen
class Step:
    """One step of the group, as it was taken. The log and the status lines are rendered from these."""

    event: Event | None
    before: Group
    after: Group
    commands: tuple[Command, ...]
    at: float


@frozen
class Started:
    """The workers of a world were started here, by these process ids."""

    world: World
    pids: tuple[int, ...]
    at: float


News: TypeAlias = Step | Started | Recorded | Seen | StoreSilent | StoreBack
"""What the agent tells."""


class Observer(Protocol):
    """Whoever shows or writes down what happens. Called from the agent's thread alone."""

    def saw(self, news: News) -> None:
        """The group took a step, workers were started, a failure is on record, the register or its store changed."""

    @property
    def until(self) -> float | None:
        """When it wants to be called again without news."""

    def passed(self, now: float) -> None:
        """That point in time has passed."""
