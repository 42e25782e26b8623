"""The steps of a trace, read to an account: the worker group takes them again, the rendezvous' client does not.

Where steps are missing, or the core decides otherwise than the agent did, nothing is known until commands show what the
group does: it starts workers, or it joins.
"""

from __future__ import annotations

from typing import assert_never

from ..group import Group, Phase, begin, transition
from ..group.state import Heart, Join, Start, Unstartable
from ..trace.steps import Asked, CallStepped, HangEnd, Header, Started, Step, Stepped, Working
from ..values import evolve, frozen
from ..work import Worked
from .account import Account, cut, executed, heard, hung, opened, stepped, worked
from .entries import Entry


@frozen
class Follower:
    """The account of a traced agent, which takes the steps of its group again."""

    account: Account
    born: Group


def follow(header: Header) -> Follower:
    """Return who follows the trace with this header. Raises ValueError for the trace of a rank's call."""
    if not isinstance(header.machine, Working):
        raise ValueError(f"{header.node}: is the call of a rank, and no node")
    return Follower(opened(header.node, header.now), Group(header.node, header.machine.settings))


def take(follower: Follower, step: Step | None) -> tuple[Follower, tuple[Entry, ...]]:
    """Take the next step of the trace; None: steps are missing here."""
    if step is None:
        account, entries = cut(follower.account)
    else:
        group = _group(follower, step) if isinstance(step, Stepped) else None
        account, entries = took(follower.account, step, group)
    return evolve(follower, account=account), entries


def took(account: Account, step: Step, group: Group | None) -> tuple[Account, tuple[Entry, ...]]:
    """Take a step of the agent. After one of its group, that is this one; None: how it stands is not known."""
    match step:
        case Asked(fed, now):
            return heard(account, fed, now)
        case Started(at=at):
            return executed(account, at)
        case Stepped(event, commands, at):
            return stepped(account, event, group, commands, at)
        case Worked():
            return worked(account, step)
        case HangEnd(rank=rank, at=at):
            return hung(account, rank, at)
        case CallStepped():
            return account, ()
        case other:
            assert_never(other)


def _group(follower: Follower, step: Stepped) -> Group | None:
    """Return the group after a step; None if it cannot be known: steps are missing before this one, or the core decides
    otherwise than the agent did."""
    before = follower.account.group
    if step.event is None:
        group, commands = begin(follower.born, step.at)
    elif before is not None:
        group, commands = transition(before, step.event)
    elif isinstance(step.event, Unstartable) and not follower.account.is_cut:  # such an agent does not begin
        group, commands = transition(follower.born, step.event)
    else:
        return _found(follower.born, step)
    is_same = [*map(type, commands)] == [*map(type, step.commands)]
    return group if is_same else _found(follower.born, step)


def _found(born: Group, step: Stepped) -> Group | None:
    """Return the group as the commands of one step show it; None if they do not."""
    for command in step.commands:
        if isinstance(command, Start):
            size = command.world.profiles[command.world.nodes.index(born.node)].local_world_size
            running = frozenset(range(size))
            return evolve(born, phase=Phase.RUNNING, world=command.world, running=running, heart=Heart(step.at))
        if isinstance(command, Join) and command.alive is None:
            return evolve(born, phase=Phase.JOINING, heart=Heart(step.at))
    return None
