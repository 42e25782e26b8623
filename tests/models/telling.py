"""The lines of a register story: one for each thing that a node asked, and one for a state of the register."""

from __future__ import annotations

from smallworld import Fate, Told
from worlds import name

from elastic.core.rendezvous import Ended, Over, Raise, RendezvousState, Restore, Return, Settled, Write
from elastic.core.world import Verdict, World


def state_line(state: RendezvousState | None) -> str:
    """Return a state in one line.

    `4: round 1 open: a expected, b in; target 2; 1 of 3 restarts spent; round 0 ended: failed, by a`
    """
    if state is None:
        return "nothing"
    seats = ", ".join(f"{name(node)} {seat.status.value}" for node, seat in state.seats.items()) or "nobody"
    life = f"life {state.life.epoch}, " if state.life.epoch > 1 else ""
    facts = [f"{state.version}: {life}round {state.round} {'complete' if state.complete else 'open'}: {seats}"]
    if not state.complete and state.target:
        facts.append(f"target {state.target}")
    if state.failures:
        facts.append(f"{state.failures} of {state.limits.max_restarts} restarts spent")
    if state.ended:
        facts.append(_ended(state.ended))
    if state.closed:
        facts.append(_verdict(state.closed))
    return "; ".join(facts)


def told_line(told: Told) -> str:
    """Return what a node asked, and what came of it, in one line."""
    match told.ask:
        case Write(state, _, edit):
            return f"{told.who} {'restores' if isinstance(edit, Restore) else 'writes'} {_write(told, state)}"
        case Return(outcome):
            return f"{told.who} {told.operation}: {_outcome(outcome)}"
        case Raise(failure, text):
            said = f": {text}" if text else ""
            return f"{told.who} {told.operation} fails ({failure.why.value}){said}"
        case other:
            return f"{told.who} {other}"


def _write(told: Told, state: RendezvousState) -> str:
    if told.fate is Fate.ANSWERED:
        return state_line(state) if told.written else f"{state.version}: refused, the register is at {_version(told)}"
    return f"{state_line(state)} ({_LOST[told.fate]})"


_LOST = {
    Fate.REPLY_LOST: "it lands, the reply is lost",
    Fate.LOST: "it is lost",
    Fate.LATE: "it is under way",
    Fate.CUT_OFF: "it is under way, and nothing is heard",
}


def _version(told: Told) -> str:
    return str(told.stands.version) if told.stands else "nothing"


def _outcome(outcome: World | Over | Verdict | Settled) -> str:
    match outcome:
        case World():
            return f"round {outcome.round} of {', '.join(name(member.node) for member in outcome.members)}"
        case Over(round, ended):
            return f"round {round} is over" + (f"; {_ended(ended)}" if ended else "")
        case Verdict():
            return _verdict(outcome)
        case Settled():
            return "settled"


def _ended(ended: Ended) -> str:
    return f"round {ended.round} ended: {ended.why.value}, by {name(ended.by)}"


def _verdict(verdict: Verdict) -> str:
    return f"closed {verdict.ending.name} in round {verdict.round}: {verdict.why.value}, by {name(verdict.by)}"
