"""One sentence for each thing that happens: where, what, and what comes next. Pure; `status` decides when to print it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from signal import Signals
from time import localtime, strftime

from ...adapters.launch_settings import LaunchSettings
from ...adapters.report.news import Restored, Seen, StoodStill, StoreSilent, SuspectedHang
from ...adapters.report.stack_records import grouped
from ...adapters.workers.messages.error_files import RAISED, end_sentence, exit_sentence
from ...core.causes import completes
from ...core.group import Group, Phase
from ...core.group.state import HEARD_S
from ...core.node import lost
from ...core.ranks import assign
from ...core.rendezvous import RendezvousState, Status, explain
from ...core.rendezvous.explain import clock, hint, named, naming, set_aside
from ...core.rendezvous.state import known_as
from ...core.world import Fault, Node, Notice, Why, World
from .text import count, first_line, lasted

NAMES_SHOWN = 4
WAKES_S = 30.0
"""An agent that stood still has read within this time what happened meanwhile."""
RANKS = 8
PLACES = 6
"""The most nodes of one kind that a sentence names; it counts the others."""


def who(node: Node, host: str, state: RendezvousState | None, world: World | None = None) -> str:
    """Return a node's name: its id, else its host, or its slot where several agents share that name, now or before."""
    return naming(state, world)(node, host)


def names_of(state: RendezvousState) -> dict[Node, str]:
    """Return the name of each node of the register."""
    return dict(zip(state.seats, known_as(state, state.seats), strict=True))


def round_began(world: World, took_s: float) -> str:
    """Return the sentence of the first round."""
    return f"round {world.round}: {_members(world)}, {_workers(world)}, started in {lasted(took_s)}"


def other_contents(world: World, state: RendezvousState | None) -> str:
    """Return a warning that one program is not the same file on all nodes of its role, or does not have the same arguments.
    Otherwise return nothing."""
    found: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    name = naming(state, world)
    for node, its in zip(world.nodes, world.profiles, strict=True):
        for what, value in (("is not the same file", its.content), ("does not have the same arguments", its.arguments)):
            if value:
                found.setdefault((its.role, its.program, what), {}).setdefault(value, []).append(name(node, its.host))
    differ = [(program, what, values) for (_, program, what), values in found.items() if len(values) > 1]
    return "; ".join(f"{program} {what} on all nodes: {_apart(values.values())}" for program, what, values in differ)


def _apart(groups: Iterable[Sequence[str]]) -> str:
    return " | ".join(few(names) for names in groups)


def few(names: Sequence[str]) -> str:
    """Return the names with commas between; of many the first, and how many there are more."""
    rest = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def restarted(world: World, max_restarts: int, stopped: int, stopped_s: float, back_s: float) -> str:
    """Return the sentence of a round after a failure: what the failure cost, and how fast the job was back."""
    back = f"{_members(world)} back in {lasted(back_s)}"
    steps = f"{count(stopped, 'worker')} stopped in {lasted(stopped_s)}, {back}" if stopped else back
    budget = f"restart {world.failures} of {max_restarts}: "
    return f"{budget}{steps}, round {world.round} started · {lasted(stopped_s + back_s)} in all"


def failed_alone(local_rank: int, again: bool, after: Group) -> str:
    """Return the sentence of a worker that fails without ending the round. Its failure record tells how it failed."""
    if again and (alone := after.settings.alone):
        return f"local rank {local_rank} is started again alone · {after.course.restarted} of {alone.restarts_max}"
    left = count(len(after.running), "worker")
    return f"local rank {local_rank} is not started again · {left} of this node left"


def formed_anew(
    world: World, before: World | None, state: RendezvousState | None, took_s: float, lives_on: bool = False
) -> str:
    """Return the sentence of a round with other members: who came, and for whom. `lives_on`: this node's workers did."""
    name = naming(state, before)
    old, new = (dict(zip(each.nodes, each.profiles, strict=True)) if each else {} for each in (before, world))
    joined = [name(node, its.host) for node, its in new.items() if node not in old]
    left = [name(node, its.host) for node, its in old.items() if node not in new]
    change = f" ({', '.join(joined)} for {', '.join(left)})" if joined and left else ""
    change = change or (f" (with {', '.join(joined)})" if joined else f" (without {', '.join(left)})" if left else "")
    if joined and joined == left and not lives_on:
        back = f"{', '.join(joined)} {'is' if len(joined) == 1 else 'are'} back"
        return f"{back}: round {world.round} started with {_members(world)}, {_workers(world)}, after {lasted(took_s)}"
    how = "not stopped here" if lives_on else "started"
    return f"round {world.round}: {_members(world)}{change}, {_workers(world)}, {how} · {lasted(took_s)} in all"


def round_ended(
    round: int, why: Why | None, by: Node | None, world: World | None, state: RendezvousState | None
) -> str:
    """Return the sentence of a round that another node ended. What this node's own workers do is told as it happens."""
    name = naming(state, world)
    hosts = {node: name(node, its.host) for node, its in zip(world.nodes, world.profiles, strict=True)} if world else {}
    gone = ", ".join(host for node, host in hosts.items() if state and node not in state.seats)
    culprit = hosts.get(by, by.slot) if by else "another node"
    match why:
        case Why.FAILED:
            return f"a worker failed on {culprit} · round {round} ends"
        case Why.LOST:
            how = "was started again" if _started_again(world, state) else "lost"
            return f"{gone or 'a node'} {how} · round {round} ends, no restart spent"
        case Why.LEFT:
            served = " · it serves the store, which ends with it" if _serves(by, world) else ""
            return f"{culprit} left · round {round} ends, no restart spent{served}"
        case Why.UPSCALE:
            waited = "a node waits and there is room (upscale_after of --rdzv-conf says how long)"
            return f"{waited} · round {round} ends, no restart spent"
        case Why.FENCED:
            return f"{culprit} had lost the store and stopped its workers · round {round} ends, no restart spent"
        case _:
            return f"round {round} ends: {why.value if why else 'the reason is unknown'}, no restart spent"


def gone_from(world: World | None, state: RendezvousState | None) -> list[str]:
    """Return the names of the nodes of this world that have no seat any longer."""
    if world is None or state is None:
        return []
    name = naming(state, world)
    those = zip(world.nodes, world.profiles, strict=True)
    return [name(node, profile.host) for node, profile in those if node not in state.seats]


def _serves(node: Node | None, world: World | None) -> bool:
    """Return True if the agent of this node of the world serves the store."""
    return bool(world and node in world.nodes and world.profiles[world.nodes.index(node)].serves_store)


def _started_again(world: World | None, state: RendezvousState | None) -> bool:
    """Return True if every node that is gone left its slot to a later incarnation of itself."""
    if world is None or state is None:
        return False
    gone = [node.slot for node in world.nodes if node not in state.seats]
    return bool(gone) and set(gone) <= {node.slot for node in state.seats}


def cause_found(before: RendezvousState | None, after: RendezvousState) -> list[str]:
    """Return the sentence of a lost node that explains earlier failures: only now are they refunded."""
    if before is None or before.ended is None or after.ended is None or before.round != after.round:
        return []
    if before.ended.why is not Why.FAILED or after.ended.why is not Why.LOST:
        return []
    gone = known_as(before, [node for node in before.expected if node not in after.seats])
    return [f"{', '.join(gone)} lost · that is why workers failed, no restart spent"]


def aside(before: RendezvousState | None, after: RendezvousState, wall: float) -> list[str]:
    """Return a sentence for each node that was set aside, is called back, or comes back. `wall` is the time of day, as
    people's clocks have it; nothing is decided by it."""
    were = before.those(Status.ASIDE) if before else ()
    if not were and not after.those(Status.ASIDE):
        return []  # as nearly always: the names of all nodes are not looked up then
    names, told = names_of(after), []
    for node, seat in after.seats.items():
        name = names[node]
        if seat.status is Status.ASIDE and seat.failing and node not in were:
            until = strftime("%H:%M:%S", localtime(wall + seat.failing.cooldown_s))
            told.append(f"{name} is {set_aside(seat)}, until {until}")
        elif node in were and seat.status is Status.EXPECTED:
            told.append(f"{name} is called back: without it there are too few nodes")
        elif node in were and seat.status in (Status.WAITING, Status.IN):
            told.append(f"{name} is back after it was set aside")
    return told


CAUSE_OPEN = "the round ends; which worker failed first is open: those on record say only that a peer is gone or silent"


def killed(group: Group, at: float) -> list[str]:
    """Return a line for the workers that are killed, because they did not end in time."""
    raised = sorted(group.running & group.failures.raised)
    since = group.settings.grace if group.stop.at is None else at - group.stop.at
    stubborn = 0 if group.stop.at is None else len(group.running) - len(raised)
    return [
        *(f"local rank {each}: still running {since:.0f} s after its exception, killed" for each in raised),
        *([f"{count(stubborn, 'worker')} did not stop in time: SIGKILL"] if stubborn else []),
    ]


def failed(fault: Fault, state: RendezvousState | None) -> list[str]:
    """Return the lines of a failure: the exit, then what the worker said. An exception was reported when it was raised: of
    its worker's end there is only more to say if it is not what follows from an exception."""
    ended, place = end_sentence(fault), who(fault.node, fault.host, state)
    worker = f"{place} rank {fault.rank} (local {fault.local_rank}, pid {fault.pid})"
    if completes(fault):
        said = f": {fault.remark}" if fault.remark else " after its exception"
        return [] if fault.exit_code == RAISED else [f"{worker} ended, {exit_sentence(fault.exit_code)}{said}"]
    lines = [f"{worker} failed: {ended} after {fault.after_s:.1f} s"]
    if fault.message and fault.message != exit_sentence(fault.exit_code):
        lines.append(f"           {first_line(fault.message)}{f'      {fault.where}' if fault.where else ''}")
    if fault.remark:
        lines.append(f"           {fault.remark}")
    if fault.log:
        lines.append(f"           last lines: {fault.log} ({place})")
    return lines


def ranks_of(ranks: Sequence[int]) -> str:
    """Return `rank 3`, `ranks 3, 4`, or `62 ranks`."""
    if len(ranks) > RANKS:
        return count(len(ranks), "rank")
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def ended_early(ended_at: Mapping[int, float], group: Group, now: float) -> str:
    """Return that some workers of this node, by local rank, have ended with 0 while others run on; else nothing."""
    if not (ended_at and group.world):
        return ""
    workers = assign(group.world)[group.node].workers
    ended = [each.rank for each in workers if each.local_rank in ended_at]
    others = [each.rank for each in workers if each.local_rank in group.running]
    ago = clock(now - max(ended_at.values()))
    if not others:
        return ""
    return (
        f"{ranks_of(ended)} ended with exit code 0, {ago} ago, and {ranks_of(others)} run{'s' * (len(others) == 1)} on"
    )


def told_places(groups: Mapping[str, Sequence[int]]) -> list[str]:
    """Return where the ranks are: most of them first, the odd ones after it."""
    told = [f"{ranks_of(ranks)} {place}" for place, ranks in groups.items()]
    rest = sum(len(ranks) for ranks in list(groups.values())[PLACES:])
    return [*told[:PLACES], *([f"{rest} more elsewhere"] if rest else [])]


def hang(suspected: SuspectedHang, state: RendezvousState | None) -> str:
    """Return what is known of a suspected hang: for how long, and where the ranks of all nodes are that suspect it."""
    names = names_of(state) if state else {}
    odd = [each.node for each in suspected.stacks if suspected.odd in dict(each.places)]
    busy = [f"rank {rank} is busy beyond its limit ({name})" for rank, name in sorted(suspected.overdue.items())]
    return " · ".join(
        (
            f"no rank of this node made progress for {suspected.silent_s:.1f} s",
            *told_places(grouped(suspected.stacks)),
            *(f"the odd one is rank {suspected.odd} on {names.get(node, node.slot)}" for node in odd),
            *busy[:PLACES],
            *([f"no hang is known on {few(_named(suspected.missing, names))}"] if suspected.missing else []),
        )
    )


def _named(nodes: Iterable[Node], names: Mapping[Node, str]) -> list[str]:
    return [names.get(node, node.slot) for node in nodes]


def signalled(before: Group, after: Group, signum: int, settings: LaunchSettings, serves: bool = False) -> str:
    """Return the sentence of a signal. `serves`: this agent serves the store, which ends with it."""
    name = Signals(signum).name
    if serves and before.phase not in (Phase.LEAVING, Phase.ENDED):
        return f"{signalled(before, after, signum, settings)} · the job's store ends with this agent"
    if before.phase is Phase.LEAVING or before.phase is Phase.ENDED:
        return f"{name} again: {count(len(before.running), 'worker')} killed"
    if not after.running:
        return f"{name}: leaving, no worker runs"
    workers = count(len(after.running), "worker")
    return f"{name}: passed on to {workers}, up to {settings.group.shutdown_timeout:g} s to end; again kills them"


def given_notice(group: Group, notice: Notice, serves: bool = False) -> str:
    """Return the sentence of a node that is drained, and whose workers have time. `serves`: this agent serves the store."""
    told = f"{count(len(group.running), 'worker')} told" if group.running else "no worker runs"
    store = " · its agent serves the store until the other nodes are gone, and no longer than that" if serves else ""
    return f"{_why_drained(group, notice)}: {told}, this node leaves within {notice.deadline_s:g} s{store}"


def goes(group: Group, notice: Notice) -> str:
    """Return the sentence of a drained node that leaves now."""
    stopped = f"{count(len(group.running), 'worker')} stopped" if group.running else "no worker runs"
    return f"{_why_drained(group, notice)}: leaving, {stopped}"


def _why_drained(group: Group, notice: Notice) -> str:
    """Name who drained this node, or say why it is unfit."""
    unfit = group.deadline.unfit if group.deadline else ""
    return f"unfit ({unfit})" if unfit else f"drained by {notice.source}"


def fenced(group: Group, settings: LaunchSettings) -> str:
    """Return the sentence of workers that --on-store-loss=stop killed."""
    killed = f"{count(len(group.running), 'worker')} killed (--on-store-loss=stop)"
    return f"{killed}: for {settings.group.fence:g} s no heartbeat reached store {settings.store}"


def unheard() -> str:
    """Return the sentence of a node that ends the round itself, because the node of the rank that ended the job has not."""
    return f"another rank ended the job, and no node has ended the round for {HEARD_S:g} s: this node ends it"


def stopping(group: Group, now: float) -> str:
    """Return the sentence of workers that have not stopped yet."""
    ranks = ", ".join(str(rank) for rank in sorted(group.running))
    option = "--grace" if group.phase is Phase.STOPPING else "--shutdown-timeout"
    kill_at = group.stop.kill_at
    left = f" · SIGKILL in {max(kill_at - now, 0.0):.0f} s ({option})" if kill_at is not None else ""
    return f"waiting for {count(len(group.running), 'worker')} to stop: local rank {ranks}{left}"


def checking(lasted_s: float, settings: LaunchSettings) -> str:
    """Return the sentence of a node that is checked, or waits for the register's word on that."""
    limit = settings.node_check.timeout if settings.node_check else 0.0
    return f"checking this node (--node-check) · {clock(lasted_s)} of {clock(limit)}"


def joining(state: RendezvousState | None, me: Node, store: str, waited_s: float, limit_s: float) -> str:
    """Return the sentence of a round that is not complete: who is here, who is missing, how long it may take."""
    spare = state is not None and me in state.redundancy_list
    found = explain(state, me) if state else f"store {store} has not answered yet"
    return f"{found} · {clock(waited_s)}{'' if spare else f' of {clock(limit_s)}'}"


def store_starts(silent: StoreSilent | None, settings: LaunchSettings, waited_s: float, limit_s: float) -> list[str]:
    """Return that this node's own store starts, which takes torch's time; then what is wrong with it, if that is known."""
    starts = f"store {settings.store} starts on this node · {clock(waited_s)} of {clock(limit_s)}"
    return [starts, *([f"         {first_line(silent.text)}"] if silent else [])]


def advice(state: RendezvousState | None, last_call_timeout: float) -> list[str]:
    """Return what the user could do about that wait."""
    text = hint(state, last_call_timeout)
    return [f"         {text}"] if text else []


def taken_for_dead(
    group: Group | None, before: RendezvousState | None, seen: Seen, stood_still: StoodStill | None
) -> list[str]:
    """Return that this agent was thrown out because it stood still; nothing if it did not, or was not."""
    if group is None or before is None or stood_still is None or seen.at - stood_still.at > WAKES_S:
        return []
    if group.node not in lost(before, seen.state):
        return []
    return [f"this agent stood still for {stood_still.span_s:.0f} s and was taken for dead"]


def statuses(state: RendezvousState | None) -> object:
    """Return what must change before a wait for nodes is news to people."""
    return tuple((node, seat.status) for node, seat in state.seats.items()) if state else ()


def store_silent(silent: StoreSilent, now: float, settings: LaunchSettings, working: bool) -> list[str]:
    """Return how long the store is out of reach and what goes on meanwhile; then what is wrong, and who must act."""
    meanwhile = f"{'workers run on, ' if working else ''}no node can join or leave meanwhile"
    return [
        f"store {settings.store} out of reach for {now - silent.at:.0f} s; {meanwhile}",
        f"         {first_line(silent.text)}",
    ]


def _are_ours(before: RendezvousState, after: RendezvousState) -> bool:
    """Return True if some node or host of this job is in a register that was begun anew: it is no other job's then."""
    known = {text for node, seat in before.seats.items() for text in (node.slot, seat.profile.host)}
    return any(node.slot in known or seat.profile.host in known for node, seat in after.seats.items())


def store_lost(news: Restored, settings: LaunchSettings) -> list[str]:
    """Return what stands in a store that had lost its memory, who restored it, and what that means here."""
    after, run, store = news.after, settings.run_id, settings.store
    own = _are_ours(news.before, after)
    if after.job != news.before.job and after.closed:
        by = "after its nodes had begun it anew" if own else "by another job"
        return [f"run id {run} was closed {after.closed.ending.name} {by}; for a new one use another --rdzv-id"]
    if after.job != news.before.job:
        how = "its nodes have begun job {} again" if own else "another job has the id {} now"
        return [f"store {store} was lost; {how.format(run)}, and this node joins it as a newcomer"]
    empty = news.found is None or news.found.job != after.job
    how = "came back empty" if empty else "came back with something older"
    source = "from this node" if news.by_me else "by another node"
    kept = f"round {after.round}, {count(after.failures, 'restart')} spent; later changes, if any, are lost"
    return [f"store {store} {how if news.by_me else 'was lost'} · restored {source}: {kept}"]


def at_the_barrier(group: Group, state: RendezvousState | None) -> str:
    """Return the sentence of a node whose workers are done, or have heard of the job's end, while those of others run."""
    if group.course.done_at is None:
        return "another rank ended the job, so this node's workers have ended · waiting for that rank's node"
    if state is None:
        return "this node's workers are done"
    others = [node for node in state.participants if node != group.node]
    return f"this node's workers are done · waiting for those of {named(state, others) or 'nobody'}"


def _members(world: World) -> str:
    return count(len(world.nodes), "node")


def _workers(world: World) -> str:
    return count(sum(profile.local_world_size for profile in world.profiles), "worker")
