"""What a user puts in the place of the core's in every node of a world: other handlers, a rank policy, other settings.

A handler of the user's decides where the core's would. All else stays: the world asks and judges it as the core's, and its
operation keeps the deadline. A span that `Setting` has is said there, because the world itself counts by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import Attribute, field

from ..caller import Terms, signature
from ..group import Settings as GroupSettings
from ..policies import Policy
from ..rendezvous import Action, Context, Decision, Held, Operation, Settings, turn
from ..rendezvous.client import Turn
from ..rendezvous.context import Handler
from ..rendezvous.handlers import declare_dead
from ..trace.plain import HANDLERS as RECORDED
from ..values import frozen
from ..world import World

NAMED = (
    *("limits", "join_timeout", "last_call_timeout", "keep_alive_interval", "keep_alive_max_attempt"),
    *("overdue_timeout", "upscale_after", "helping_above", "leased", "barrier_timeout", "party_timeout"),
    *("ttl", "max_node_failures", "first_target", "grace", "shutdown_timeout", "start_timeout", "fence", "checks"),
)
"""The settings of both machines that `Setting` has, by a name of its own."""

HANDLERS: frozenset[object] = frozenset((*RECORDED.values(), declare_dead))
"""The core's handlers: those that a trace may name, and the one of ranks that another register declares dead."""


def _of_the_core(instance: object, attribute: Attribute[Any], value: Mapping[Handler, Handler]) -> None:
    for each in value:
        if each not in HANDLERS:
            raise ValueError(f"handlers: {each!r} is no handler of the core's, as handlers.watch is")


def _is_policy(instance: object, attribute: Attribute[Any], value: Policy | None) -> None:
    if value is not None and not isinstance(value, Policy):
        raise ValueError(f"policy: {value!r} is no Policy of core.policies, as at_most(8) is")


@frozen
class Own:
    """The user's parts. What is not given is the core's."""

    handlers: Mapping[Handler, Handler] = field(factory=dict, validator=_of_the_core)
    """The core's handler → the user's, which decides in its place."""
    policy: Policy | None = field(default=None, validator=_is_policy)
    """The rank policy of every node. The node that completes a world writes the digest of it (`RendezvousState.policy`)."""
    settings: Callable[[Settings], Settings] = lambda settings: settings
    """Takes the settings that `Setting` makes for the rendezvous, and returns the nodes' own."""
    group: Callable[[GroupSettings], GroupSettings] = lambda settings: settings
    """The same for the worker group."""

    @property
    def turn(self) -> Turn:
        """The turn in which the user's handlers decide."""

        def turns(operation: Operation, held: Held, now: float) -> Decision:
            return turn(operation, held, now, decides.get(operation.handler))

        decides = {each: _held_to_actions(own) for each, own in self.handlers.items()}
        return turns if self.handlers else turn

    @property
    def digest(self) -> Callable[[World], str] | None:
        """What the policy makes of a world, as nodes compare it."""
        return partial(signature, Terms(self.policy)) if self.policy else None

    def settings_of(self, rendezvous: Settings, group: GroupSettings) -> tuple[Settings, GroupSettings]:
        """Return the nodes' own settings. Raises ValueError for one that `Setting` says."""
        own = self.settings(rendezvous), self.group(group)
        _refuse_other(own[0], rendezvous)
        _refuse_other(own[1], group)
        return own


def _held_to_actions(handler: Handler) -> Handler:
    def decides(ctx: Context, deadline: float) -> Action:
        action = handler(ctx, deadline)
        if not isinstance(action, Action):
            raise TypeError(f"{handler!r} returns {action!r}, which is no action, as Sync(deadline) is")
        return action

    return decides


def _refuse_other(given: object, its: object) -> None:
    for name in NAMED:
        if getattr(given, name, None) != getattr(its, name, None):
            raise ValueError(f"{name}: is {getattr(its, name)} by the world's Setting, so say it there")


CORE = Own()
"""Nothing of a user's."""
