"""When the helper process that serves a store is started, looked at and killed: a pure function of what its agent sees.

The helper loads torch, which takes half a second, or minutes from a slow disk. Then it answers. Its agent looks at it at
regular times, and each look asks it for an answer.

- A helper that died is started again: at once the first time, after a pause that doubles from then on. A helper that has
  answered for the whole span `still_s` was well: its death is a first one again.
- Starts in a row that end without any answer are counted. At the bound the agent gives up: this helper cannot start.
- A helper without a sign of life for LOOKS looks is killed, so that its death starts the next one. An answer is a sign of
  life. A helper that starts has not answered yet: CPU time is its sign of life, and it has START_LOOKS looks.

Silence is counted in looks and not in seconds. An agent that stood still did not look, so a pause of the whole host kills no
helper. Nothing here knows a process or a socket.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TypeAlias, assert_never

from .backoff import pause_s
from .spans import span
from .values import evolve, field, frozen

LOOKS = 8
"""The number of looks without an answer after which a helper is killed, the looks within `still_s`."""
START_LOOKS = 48
"""The same for a helper that has not answered since its start: without any CPU time, and six times as long."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
STARTS_MAX = 20
"""The starts in a row without an answer after which the agent gives up: eight minutes of a host that is out of memory."""
FIRST_STARTS_MAX = 5
"""The same for a store that has never answered: torch cannot be imported here."""


@frozen
class Helper:
    """What an agent knows of the helper of its store."""

    still_s: float = field(validator=span)
    """A running helper that does not answer for this long is killed."""
    at: float
    """When the next look, or the next start, is due."""
    runs: bool = True
    answered_at: float | None = None
    """When it answered first; None: not since its start."""
    silence: int = 0
    """The looks in a row without a sign of life."""
    deaths: int = 0
    """The deaths in a row of helpers that were not well."""
    mute: int = 0
    """The starts in a row that ended without an answer."""
    has_served: bool = False
    """A helper has answered."""

    @property
    def every_s(self) -> float:
        """The span between two looks."""
        return self.still_s / LOOKS

    @property
    def is_starting(self) -> bool:
        """True while it runs and has not answered."""
        return self.runs and self.answered_at is None

    @property
    def given_up(self) -> bool:
        """True if no helper is started any more."""
        return self.mute >= (STARTS_MAX if self.has_served else FIRST_STARTS_MAX)


@frozen
class Started:
    """A helper was started."""

    at: float


@frozen
class Ended:
    """The helper has died, or could not be started."""

    at: float


@frozen
class Answered:
    """The helper has answered a question."""

    at: float


@frozen
class Stirred:
    """The helper has used CPU time since the last look."""


@frozen
class Passed:
    """The time has come to which the agent waited."""

    at: float


Event: TypeAlias = Started | Ended | Answered | Stirred | Passed


class Command(Enum):
    """What the agent does next."""

    START = "start"
    """Start a helper, and tell Started or Ended."""
    LOOK = "look"
    """Ask it for an answer, if no question is out."""
    KILL = "kill"
    """Kill it. Its death is told as any other."""
    GIVE_UP = "give up"
    """Serve no store any more."""


def transition(helper: Helper, event: Event) -> tuple[Helper, Command | None]:
    """Return what the agent knows after this event, and what it does."""
    match event:
        case Started(at):
            return evolve(helper, runs=True, answered_at=None, silence=0, at=at), None
        case Answered(at):
            first = at if helper.answered_at is None else helper.answered_at
            return evolve(helper, answered_at=first, silence=0, mute=0, has_served=True), None
        case Stirred():
            return (evolve(helper, silence=0) if helper.is_starting else helper), None
        case Ended(at):
            return _ended(helper, at)
        case Passed(at):
            return _passed(helper, at)
        case other:
            assert_never(other)


def _ended(helper: Helper, at: float) -> tuple[Helper, Command | None]:
    was_well = helper.answered_at is not None and at >= helper.answered_at + helper.still_s
    deaths = 1 if was_well else helper.deaths + 1
    mute = helper.mute + (helper.answered_at is None)
    pause = pause_s(deaths - 1, FIRST_PAUSE_S, LONGEST_PAUSE_S) if deaths > 1 else 0.0
    after = evolve(helper, runs=False, answered_at=None, silence=0, deaths=deaths, mute=mute, at=at + pause)
    return (evolve(after, at=math.inf), Command.GIVE_UP) if after.given_up else (after, None)


def _passed(helper: Helper, at: float) -> tuple[Helper, Command | None]:
    if at < helper.at:
        return helper, None
    if not helper.runs:
        return evolve(helper, at=math.inf), Command.START
    next_at = at + helper.every_s
    if helper.silence >= (START_LOOKS if helper.is_starting else LOOKS):
        return evolve(helper, silence=0, at=next_at), Command.KILL
    return evolve(helper, silence=helper.silence + 1, at=next_at), Command.LOOK
