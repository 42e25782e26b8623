"""The judge of torch's runs: it judges each write of torch's register, each start of workers, and the end of a run.

A finding is what our agents must not do. It has the number of its property in docs/protocol.md, or a word of ours if there
is none (`torchstories.WORDS`). The judge notes and does not raise: a run goes on, and may break more.
"""

from __future__ import annotations

import pickle
from base64 import b64decode
from typing import TYPE_CHECKING

from torch.distributed.elastic.agent.server.api import WorkerGroup
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDesc, _RendezvousState
from torchnode import TorchProcess, spelled

if TYPE_CHECKING:
    from torchworld import TorchWorld


def judges_write(world: TorchWorld, process: TorchProcess, before: _RendezvousState, after: _RendezvousState) -> None:
    if after.last_heartbeats.get(process.desc) != before.last_heartbeats.get(process.desc):
        process.heard_at = world.future.now
    seated, still = _seated(before), _seated(after)
    for desc in sorted(seated - still - {process.desc}):
        other = world.of(desc)
        world.counts["evicted"] += 1
        world.causes["evictions"] += 1
        # half of the TTL, so that a node whose messages were slow does not count
        silent_for = world.future.now - other.heard_at
        if other.alive and other.outcome is None and silent_for < world.ttl / 2:
            world.finds("L3", f"{process.name} throws out {other.name}, last heard {silent_for:.1f} s ago")
    world.spares |= {spelled(desc) for desc in after.redundancy_list}
    if after.complete and not before.complete:
        world.counts["rounds completed"] += 1
        judges_world(world, {spelled(desc) for desc in after.participants})
    if after.closed and not before.closed:
        judges_close(world, process)


def judges_world(world: TorchWorld, now: set[str]) -> None:
    newcomers = sorted((now & world.spares) - set(world.members))
    ousted = [
        process.name
        for process in world.living()
        if process.name in world.members and process.name not in now and process.sound_from <= world.future.now
    ]
    if newcomers and ousted:
        world.finds("seat", f"{ousted[0]}, a member that lives, is no member; {newcomers[0]}, a spare, is")
    world.members, world.spares = tuple(sorted(now)), set()


def judges_close(world: TorchWorld, process: TorchProcess) -> None:
    """Judge a close by the way its agent ends: with success, with a final failure, or with an exception."""
    why = process.phase
    others = [
        other
        for other in world.living()
        if other is not process and other.outcome is None and (other.workers or other.phase == "joins")
    ]
    if why == "at the exit barrier" and process.ran:
        running = [other.name for other in others if other.workers and other.name in process.ran[1]]
        if running:
            world.finds("S14", f"{process.name} closes the job as done while workers of {running[0]} run")
    elif process.raising and others:
        world.finds("close", f"{process.name} raises {process.raising}, and closes the job for {others[0].name}")


def judges_start(world: TorchWorld, process: TorchProcess, group: WorkerGroup) -> None:
    assert process.ran is not None
    round, members = process.ran
    handler = process.handler
    assert handler is not None
    size = group.workers[0].world_size
    told = (members, handler.size)
    first = world.worlds.setdefault(round, told)
    if first != told:
        world.finds("S2", f"round {round} is {_named(first[0])} for one, {_named(members)} for {process.name}")
    ranks = [worker.global_rank for worker in group.workers]
    if max(ranks) >= size or size != handler.size * world.setting.workers:
        world.finds("S3", f"{process.name} has ranks {ranks} of {size} workers, on {handler.size} nodes")
    failed, most = len(world.failed), world.setting.limits.max_restarts
    if failed > most:
        world.finds("B1", f"{process.name} starts again: {failed} rounds failed, {most} restarts")
    if process.spent > world.own_failures[process.name]:
        own = world.own_failures[process.name]
        world.finds("charged", f"{process.name} has spent {process.spent} restarts, {own} of them for its own failures")
    for other in world.living():
        sound = other.sound_from + world.ttl < world.future.now
        if other.workers and other.ran and other.ran[0] < round and other.name not in members and sound:
            text = f"round {round} starts with {_named(members)} while {other.name} runs round {other.ran[0]}"
            world.finds("two worlds", f"{text}, and nothing is wrong with it")


# --- the end of a run


def is_over(world: TorchWorld) -> bool:
    return not any(world.living())


def rests(world: TorchWorld) -> bool:
    if world.register.closed:
        return is_over(world)
    living = list(world.living())
    return len(living) >= world.setting.limits.min_nodes and all(at_rest(world, process) for process in living)


def at_rest(world: TorchWorld, process: TorchProcess) -> bool:
    state = world.register
    if process.desc in state.redundancy_list:
        return state.complete
    runs = process.phase.startswith("runs") or process.phase == "at the exit barrier"
    here = process.ran is not None and process.ran[0] == state.round
    return state.complete and process.desc in state.participants and runs and here


def notes_lost(world: TorchWorld) -> None:
    """Note a member that is dead in a world at rest: the others were not told."""
    for process in world.living():
        if process.ran and process.workers:
            gone = [name for name in process.ran[1] if not any(other.name == name for other in world.living())]
            if gone:
                world.finds("lost", f"{process.name} runs on in a world with {gone[0]}, which is dead")
                return


def notes_restless(world: TorchWorld, bound: float, when: str) -> None:
    state = world.register
    for process in world.living():
        if state.closed or not at_rest(world, process) or when != "without faults":
            seated = process.desc in state.participants
            orphan = process.workers and process.ran and (not seated or process.ran[0] != state.round)
            number = "L2 orphan" if orphan else "L2 barrier" if "barrier" in process.phase else "L2 stuck"
            world.finds(number, f"{bound:g} s {when}: {process.name} {process.phase}; {sentence(state)}")


def notes_outcomes(world: TorchWorld) -> None:
    ended = {process.name: process for process in world.processes if process.outcome is not None}
    good = [name for name, process in ended.items() if process.outcome == "succeeded"]
    bad = [
        name for name, process in ended.items() if process.outcome and process.outcome.startswith(("failed", "raised"))
    ]
    members = [name for name in bad if ended[name].ran is not None]
    late = [name for name in bad if ended[name].ran is None]
    if good and members:
        world.finds("verdict", f"{good[0]} succeeded; {members[0]}: {ended[members[0]].outcome}")
    if good and late:
        world.finds("spare's verdict", f"{good[0]} succeeded; {late[0]}, which never ran: {ended[late[0]].outcome}")


# --- the register


def decoded(value: bytes) -> _RendezvousState | None:
    if not value or value == C10dRendezvousBackend._NULL_SENTINEL.encode():
        return None
    state = pickle.loads(b64decode(value))
    assert isinstance(state, _RendezvousState)
    return state


def _seated(state: _RendezvousState) -> set[_NodeDesc]:
    return {*state.participants, *state.wait_list, *state.redundancy_list}


def sentence(state: _RendezvousState) -> str:
    lists = ((state.participants, "in"), (state.wait_list, "waiting"), (state.redundancy_list, "spare"))
    seats = [f"{spelled(desc)}:{what}" for those, what in lists for desc in sorted(those)]
    closed = ", closed" if state.closed else ""
    return f"round {state.round} {'complete' if state.complete else 'open'}{closed} [{' '.join(seats)}]"


def _named(members: tuple[str, ...]) -> str:
    return "{" + ", ".join(members) + "}"
