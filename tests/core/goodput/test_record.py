"""The records of the nodes add up to the time of the job, whoever came and went."""

from __future__ import annotations

import pytest
from attrs import define, field
from goodputs import beside
from hypothesis import given
from hypothesis import strategies as st
from traced import finished, started
from worlds import arrived, edited, node, register, running

from elastic.core.goodput import Kind, NodeRecord, Spent, by_kind, job_time, spent, whole
from elastic.core.goodput.record import (
    EVERY,
    GONE_MAX,
    GROWN_MAX,
    HELD_BEATS,
    SHORT,
    TAKEN_AT_ONCE,
    JobTime,
    Keeper,
    few,
    grown,
    lasting,
    looked,
    missed,
    record,
    settled,
    told,
    took,
)
from elastic.core.rendezvous import Arrive, Evict, Leave, RendezvousState
from elastic.core.values import evolve
from elastic.core.work import OTHER
from elastic.core.world import COUNT_MAX, SHARES_MAX, Node

A, B, C = map(node, "abc")
TRAINED, WAITED = ("training", "none"), ("waiting", "loss")


@define
class Fleet:
    """Nodes that keep their records on one shelf, and look at one register."""

    state: RendezvousState
    keepers: dict[Node, Keeper] = field(factory=dict)
    shelf: dict[Node, NodeRecord] = field(factory=dict)
    spent: dict[Node, dict[tuple[str, str], int]] = field(factory=dict)
    """All of each node's time."""

    def looks(self, *nodes: Node) -> None:
        for each in nodes:
            self.keepers[each] = looked(self.keepers.get(each, Keeper(each)), self.state)

    def works(self, who: Node, micros: int, share: tuple[str, str] = TRAINED) -> None:
        """Spend time; the record tells it."""
        shares = self.spent.setdefault(who, {})
        shares[share] = shares.get(share, 0) + micros
        self.puts(who)

    def puts(self, who: Node, drops: bool = True) -> None:
        """Do what a node does beside a heartbeat, which may fail before it has dropped what it took over."""
        keeper, own = self.keepers[who], Spent(dict(self.spent.get(who, {})))
        if keeper.has_gone and who not in self.shelf:
            keeper = missed(keeper)
        due = keeper.owed[:TAKEN_AT_ONCE]
        keeper = took(keeper, {each: self.shelf[each] for each in due if each in self.shelf})
        self.shelf[who] = record(keeper, own)
        self.keepers[who] = told(keeper, own)
        if drops:
            for each in due:
                self.shelf.pop(each, None)
            self.keepers[who] = settled(self.keepers[who], due)

    def edits(self, who: str, edit: Arrive | Evict | Leave) -> None:
        self.state = edited(self.state, who, edit)

    @property
    def job(self) -> JobTime:
        return job_time(self.shelf[each] for each in self.state.seats if each in self.shelf)

    @property
    def all(self) -> int:
        return sum(sum(shares.values()) for shares in self.spent.values())


def fleet(names: str = "a b c") -> Fleet:
    made = Fleet(running(names, "1:9"))
    made.looks(*map(node, names.split()))
    return made


# --- of one node


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_is_spent_is_all_that_the_account_has(name: str) -> None:
    agent = getattr(finished(), name)
    ledger = beside(agent.header, agent.steps, 1)
    kinds = {(bucket, kind.value): micros for (bucket, kind), micros in by_kind(whole(ledger)).items()}
    assert spent(ledger).whole == kinds
    told_all = evolve(ledger, account=evolve(ledger.account, run=None))
    assert spent(told_all).run == 0


def test_a_run_that_is_not_over_is_told_apart() -> None:
    """Only when its workers have told what they came to it is known what of it was training."""
    agent = started().a
    ledger = beside(agent.header, agent.steps, 1)
    own, kinds = spent(ledger), by_kind(whole(ledger))
    assert own.run == kinds["running", Kind.NONE] > 0 and ("running", "none") not in own.shares
    assert sum(own.shares.values()) + own.run == sum(kinds.values())
    for trains, bucket in ((False, "running"), (True, "training")):
        mine = record(Keeper(A), evolve(own, trains=trains))
        assert job_time([mine]).shares[bucket, "none"] == own.run


def test_of_too_many_shares_the_longest_are_told_and_the_others_by_their_cause() -> None:
    many = {(f"span {number}", "program"): number for number in range(1, 3 * SHARES_MAX)}
    kept = few(many)
    assert len(kept) <= SHARES_MAX and sum(kept.values()) == sum(many.values())
    assert kept["span 250", "program"] == 250 and kept[OTHER, "program"] > 0
    assert few({("waiting", "loss"): 0, TRAINED: 3}) == {TRAINED: 3}


def test_what_is_short_is_not_told() -> None:
    assert not JobTime({TRAINED: SHORT - 1}).is_told
    assert JobTime({TRAINED: SHORT - 1, WAITED: 1}).is_told


def test_a_run_lasts_until_now_and_no_longer_than_a_record_may_be_old() -> None:
    mine = record(Keeper(A), Spent({WAITED: 5}, run=10), at=1_000)
    for now, run in ((1_000, 10), (1_100, 110), (900, 10), (10 * EVERY, 10 + EVERY)):
        assert lasting(mine, now).own == Spent({WAITED: 5}, run)
    assert lasting(evolve(mine, at=0), 1_000).own.run == 10


def test_no_counter_goes_back() -> None:
    assert grown({TRAINED: 3, WAITED: 1}, {TRAINED: 2, ("spare", "spare"): 1}) == {
        TRAINED: 3,
        WAITED: 1,
        ("spare", "spare"): 1,
    }
    assert grown({TRAINED: 3}, {TRAINED: 4}) == {TRAINED: 4}


def test_counters_stay_as_many_whatever_a_record_names() -> None:
    counted = dict[tuple[str, str], int]()
    for number in range(2 * GROWN_MAX):
        counted = dict(grown(counted, {TRAINED: number, (f"span {number}", "program"): 1}))
    assert len(counted) == GROWN_MAX and counted[TRAINED] == 2 * GROWN_MAX - 1 and ("span 0", "program") in counted


# --- of nodes that go


def test_the_first_node_takes_over_the_time_of_those_that_have_gone() -> None:
    job = fleet()
    for each, micros in ((A, 1), (B, 10), (C, 100)):
        job.works(each, micros)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, C)
    job.works(C, 1_000)
    job.works(A, 10_000)
    assert job.job.shares == {TRAINED: 11_111} and job.job.nodes == 3
    assert job.shelf.keys() == {A, C} and job.shelf[A].gone == 1 and not job.shelf[C].gone


def test_where_the_first_node_goes_the_next_one_takes_over_what_that_had() -> None:
    job = fleet()
    for each in (A, B, C):
        job.works(each, 1)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, C)
    job.works(A, 1, WAITED)
    job.edits("c", Evict(frozenset({A})))
    job.looks(C)
    job.puts(C)
    assert job.job.shares == {TRAINED: 3, WAITED: 1} and job.job.nodes == 3 and job.shelf.keys() == {C}


def test_where_the_first_node_goes_before_it_has_taken_over_the_next_one_does_it() -> None:
    job = fleet()
    for each in (A, B, C):
        job.works(each, 1)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, C)
    job.edits("c", Evict(frozenset({A})))
    job.looks(C)
    job.puts(C)
    assert job.job.shares == {TRAINED: 3}


def test_what_was_taken_over_is_not_taken_again_where_its_record_stands_on() -> None:
    """The first node may die before it has dropped the record of the one that had gone."""
    job = fleet()
    for each in (A, B, C):
        job.works(each, 1)
    left = job.shelf[B]
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, C)
    job.puts(A)
    job.shelf[B] = left
    job.edits("c", Evict(frozenset({A})))
    job.looks(C)
    job.puts(C)
    assert job.job.shares == {TRAINED: 3} and job.job.nodes == 3
    job.keepers[C] = evolve(job.keepers[C], due=(A, B))
    job.shelf[B] = left
    job.puts(C)
    assert job.job.shares == {TRAINED: 3}


def test_a_node_that_comes_back_counts_from_there_and_waits_with_its_record() -> None:
    job = fleet("a b")
    job.works(A, 1)
    job.works(B, 10)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, B)
    assert job.keepers[B].held == HELD_BEATS
    job.edits("b", Arrive(running("a b").seats[B].profile))
    job.looks(A, B)
    job.puts(A)
    assert job.job.shares == {TRAINED: 11}
    job.works(B, 100)
    assert job.job.shares == {TRAINED: 111} and job.keepers[B].part == 1
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, B)
    job.puts(A)
    assert job.job.shares == {TRAINED: 111} and job.job.nodes == 2


def test_time_of_which_it_is_known_later_what_it_was_stays_the_same_time() -> None:
    """What a node had told as running, and left to another, was training."""
    job = fleet("a b")
    job.works(B, 10, ("running", "none"))
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, B)
    job.works(A, 1)
    job.edits("b", Arrive(running("a b").seats[B].profile))
    job.looks(A, B)
    job.spent[B] = {TRAINED: 15}
    job.puts(B)
    assert job.job.shares == {TRAINED: 16}


def test_a_node_that_comes_in_place_of_all_that_were_there_takes_over_their_time() -> None:
    job = Fleet(arrived(register("1:1"), "a"))
    job.looks(A)
    job.works(A, 5)
    again = node("a#2")
    job.looks(again)
    job.edits("a#2", Arrive(running("a").seats[A].profile))
    job.looks(again)
    job.works(again, 1)
    assert job.job.shares == {TRAINED: 6} and job.shelf.keys() == {again}


def test_nothing_goes_from_one_job_to_another() -> None:
    job = fleet("a b")
    job.works(A, 1)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A)
    other = evolve(running("a c", "1:9"), job="another")
    keeper = looked(evolve(job.keepers[A], taken={TRAINED: 7}, gone=1), other)
    assert (keeper.due, keeper.taken, keeper.gone, keeper.job) == ((), {}, 0, "another")


def test_a_record_names_the_last_of_those_whose_time_was_taken_over() -> None:
    gone = [Node("gone", number) for number in range(2 * GONE_MAX)]
    keeper = took(Keeper(A, due=tuple(gone)), {each: NodeRecord(each, Spent({TRAINED: 1})) for each in gone})
    assert keeper.taken == {TRAINED: len(gone)} and keeper.gone == len(gone)
    assert keeper.last == tuple((each, 0) for each in gone[-GONE_MAX:])


def test_a_node_whose_return_nobody_saw_counts_on() -> None:
    """A node reads the register when it can, and may miss that another was gone for a moment."""
    job = fleet("a b")
    job.works(A, 1)
    job.works(B, 10)
    job.edits("a", Evict(frozenset({B})))
    job.looks(B)
    job.edits("b", Arrive(running("a b").seats[B].profile))
    job.looks(A, B)
    job.works(B, 100)
    job.puts(A)
    assert job.job.shares == {TRAINED: 111} and job.keepers[B].part == 0


def test_a_node_that_was_taken_over_after_it_had_come_back_counts_once() -> None:
    job = fleet("a b")
    job.works(A, 1)
    job.works(B, 10)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, B)
    job.edits("b", Arrive(running("a b").seats[B].profile))
    job.looks(A, B)
    job.works(B, 100)
    job.puts(A)
    assert job.job.shares == {TRAINED: 111}
    job.works(B, 1_000)
    assert job.job.shares == {TRAINED: 1_111}


@pytest.mark.parametrize("order", [(A, C), (C, A)], ids=["nobody has it", "another has it"])
def test_a_first_node_that_comes_back_has_what_it_took_over_unless_another_has_it(order: tuple[Node, Node]) -> None:
    job = fleet()
    for each in (A, B, C):
        job.works(each, 1)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, C)
    job.puts(A)
    job.edits("c", Evict(frozenset({A})))
    job.looks(A, C)
    if order[0] == C:
        job.puts(C)
    job.edits("a", Arrive(running("a").seats[A].profile))
    job.looks(A, C)
    for each in order:
        job.puts(each)
    assert job.job.shares == {TRAINED: 3} and job.job.nodes == 3


def test_what_could_not_be_dropped_is_dropped_later_and_taken_once() -> None:
    job = fleet()
    for each in (A, B, C):
        job.works(each, 1)
    job.edits("a", Evict(frozenset({B})))
    job.looks(A, C)
    job.puts(A, drops=False)
    assert B in job.shelf and job.keepers[A].owed == (B,)
    job.puts(A)
    assert B not in job.shelf and not job.keepers[A].owed and job.job.shares == {TRAINED: 3}


def test_what_is_taken_over_is_no_more_than_a_record_holds() -> None:
    """Records may be forged, and nobody reads a record with a larger number."""
    forged = {
        each: NodeRecord(each, Spent({TRAINED: COUNT_MAX, WAITED: -COUNT_MAX}), gone=COUNT_MAX) for each in (B, C)
    }
    keeper = took(Keeper(A, due=(B, C)), forged)
    assert keeper.taken == {TRAINED: COUNT_MAX, WAITED: -COUNT_MAX} and keeper.gone == COUNT_MAX


def test_of_many_that_have_gone_some_are_taken_at_once_and_none_twice() -> None:
    """Each time the first node dies before it has dropped what it took over. A node whose time is known names the last."""
    names = [f"n{number:03}" for number in range(100)]
    job = Fleet(running(" ".join(names), "1:999"))
    nodes = [node(each) for each in names]
    job.looks(*nodes)
    for each in nodes:
        job.works(each, 1)
    job.edits(names[0], Evict(frozenset(nodes[3:])))
    job.looks(*nodes[:3])
    job.puts(nodes[0])
    assert len(job.shelf) == 100 - TAKEN_AT_ONCE
    for one, other in ((0, 1), (1, 2)):
        job.puts(nodes[one], drops=False)
        job.edits(names[other], Evict(frozenset({nodes[one]})))
        job.looks(nodes[other])
    for _ in range(5):
        job.puts(nodes[2])
    assert job.job.shares == {TRAINED: 100} and job.job.nodes == 100 and job.shelf.keys() == {nodes[2]}


@given(st.lists(st.tuples(st.sampled_from(["work", "go", "come"]), st.sampled_from("abcde")), max_size=40))
def test_the_records_always_add_up_to_the_time_of_all(moves: list[tuple[str, str]]) -> None:
    """If each node looks at each version, and the first one puts its record."""
    job, there = fleet("a b c d e"), dict[str, Node]({each: node(each) for each in "abcde"})
    for number, (move, name) in enumerate(moves):
        seated = [each for each in there.values() if each in job.state.seats]
        who = there[name]
        if move == "work" and who in seated:
            job.works(who, 1)
        elif move == "go" and who in seated and len(seated) > 1:
            by = next(each for each in seated if each != who)
            job.state = edited(job.state, str(by).replace("#1", ""), Evict(frozenset({who})))
        elif move == "come" and who not in seated:
            there[name] = who = Node(name, number + 2)
            job.looks(who)
            job.state = edited(job.state, str(who), Arrive(running("a").seats[A].profile))
        now = [each for each in there.values() if each in job.state.seats]
        job.looks(*now)
        if first := job.state.first:
            job.puts(first)
            assert not job.keepers[first].owed
        assert sum(job.job.shares.values()) == job.all
        assert len(job.shelf) <= len(job.state.seats)
