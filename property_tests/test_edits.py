"""Random histories of edits by any nodes: every state and every step is legal, and survives the codec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from explore import edits, judged
from hypothesis import given, settings
from hypothesis import strategies as st
from seen import sometimes
from worlds import node, register

from elastic.core.ranks import assign
from elastic.core.rendezvous import (
    Arrive,
    Close,
    Complete,
    Done,
    Edit,
    End,
    Evict,
    Leave,
    Overdue,
    RendezvousState,
    Reserve,
    Status,
    apply,
)
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.rendezvous.state import AWAY
from elastic.core.world import Node, Why

NODES = [node(f"{slot}#{incarnation}") for slot in "abcdef" for incarnation in (1, 2)]
SEEN: Counter[str] = Counter()
OUT = (*AWAY, Status.LEAVING, Status.ASIDE)
WANTED = [
    "complete by last arrival",
    "complete by last call",
    "complete at max",
    "closed SUCCEEDED",
    "closed FAILED",
    "closed CANCELLED",
    "quorum lost",
    "a spare",
    "a spare promoted",
    "refund",
    "the bump",
    *(f"end by {why.value}" for why in (Why.FAILED, Why.LOST, Why.LEFT, Why.UPSCALE, Why.FENCED)),
    *(f"superseded {status.name}" for status in Status if status not in OUT),
]
"""No edit here gives notice or tells of failures, so nobody is LEAVING or ASIDE: the simulator has such nodes."""
SIZES = ["1:1", "1:2", "2:2", "1:4", "2:4", "3:5", "4:4"]


KINDS = [*[Arrive] * 5, *[Done] * 3, *[End] * 2, Reserve, Complete, Overdue, Evict, Leave]
RARE = [*KINDS * 5, Close]


@st.composite
def histories(draw: st.DrawFn) -> list[RendezvousState]:
    """Draw all states of one history of a register. Usual edits are drawn more often, and each changes something."""
    states = [register(draw(st.sampled_from(SIZES)), draw(st.integers(0, 2)))]
    for _ in range(draw(st.integers(0, 60))):
        kind, which = draw(st.sampled_from(RARE)), draw(st.integers(0, 99))
        possible = [move for move in _moves(states[-1], kind) if judged(states[-1], *move)]
        if possible:
            edit, me = possible[which % len(possible)]
            states.append(apply(states[-1], edit, me))
            SEEN.update(sometimes(states[-2], edit, me, states[-1]))
    return states


def _moves(state: RendezvousState, kind: type[Edit]) -> Iterator[tuple[Edit, Node]]:
    seated = set(state.seats)
    for me in NODES:
        if me in seated or kind in (Arrive, Leave):
            yield from ((edit, me) for edit in edits(state, me, reserves=True) if type(edit) is kind)


def every_state_comes_back_from_its_bytes(states: list[RendezvousState]) -> None:
    for state in states:
        assert decode(encode(state)) == state


def every_edit_by_any_node_leads_to_a_legal_state_by_a_legal_step(states: list[RendezvousState]) -> None:
    for me in NODES:
        for edit in edits(states[-1], me, reserves=True):
            judged(states[-1], edit, me)


def orders_go_to_newcomers_once_and_only_members_change_them_when_their_world_is_completed(
    states: list[RendezvousState],
) -> None:
    for before, after in pairwise(states):
        old = {seat.order for seat in before.seats.values()}
        assert all(seat.order in old or seat.order >= before.next_order for seat in after.seats.values())
        completes = after.complete and (not before.complete or after.round > before.round)
        for who, seat in after.seats.items():
            kept = who in before.seats and before.seats[who].order == seat.order
            assert kept or seat.order >= before.next_order or (completes and who in after.members)


def survivors_keep_the_order_of_their_ranks(states: list[RendezvousState]) -> None:
    line: list[Node] = []
    for state in states:
        line = [who for who in line if who in state.seats]
        assert [who for who in state.seats if who in line] == line
        line = [*state.members] if state.complete else line


def no_more_restarts_are_spent_than_rounds_were_ended_by_a_failure(states: list[RendezvousState]) -> None:
    failed = {state.ended.round for state in states if state.ended and state.ended.why is Why.FAILED}
    assert all(0 <= state.failures <= len(failed) for state in states)


def the_ranks_of_every_complete_round_are_dense(states: list[RendezvousState]) -> None:
    for state in states:
        if state.complete:
            ranks = assign(state.world)
            assert [worker.rank for who in state.members for worker in ranks[who].workers] == list(range(len(ranks)))


def an_open_round_waits_at_least_for_those_it_expects(states: list[RendezvousState]) -> None:
    for state in states:
        assert state.complete or state.census[Status.EXPECTED] <= state.target


CLAIMS = (
    every_state_comes_back_from_its_bytes,
    every_edit_by_any_node_leads_to_a_legal_state_by_a_legal_step,
    orders_go_to_newcomers_once_and_only_members_change_them_when_their_world_is_completed,
    survivors_keep_the_order_of_their_ranks,
    no_more_restarts_are_spent_than_rounds_were_ended_by_a_failure,
    the_ranks_of_every_complete_round_are_dense,
    an_open_round_waits_at_least_for_those_it_expects,
)
"""All are asked of the same histories: to draw one takes longer than to ask."""


@settings(max_examples=2 * settings.default.max_examples if settings.default else 200)
@given(histories())
def keeps_every_claim(states: list[RendezvousState]) -> None:
    for claim in CLAIMS:
        claim(states)


def test_random_histories_keep_every_claim_and_show_what_is_worth_having_seen() -> None:
    SEEN.clear()
    keeps_every_claim()
    assert [what for what in WANTED if not SEEN[what]] == [], SEEN
