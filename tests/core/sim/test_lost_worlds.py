"""A world that the store loses while it runs: the judge finds one that stops or does not stand again (R12)."""

from __future__ import annotations

import pytest
from attrs import evolve
from simulated import TWO, at, both_running, hangs, then, world
from worlds import arrived, edited, node, profile, register, running

from elastic.core.group import Phase
from elastic.core.properties.facts import Wrote
from elastic.core.rendezvous import Arrive, Close, End, Ended, Evict, Restore, Violation, restored
from elastic.core.sim.kinds import Kind
from elastic.core.sim.lost_worlds import KEPT_BEATS, LostWorld, LostWorlds
from elastic.core.sim.network import ANSWER_TIMEOUT_S
from elastic.core.sim.run import converges
from elastic.core.sim.simulation import World
from elastic.core.sim.story import Operation
from elastic.core.world import Ending, Life, Verdict, Why

WORLD = running("a b", size="2:3", restarts=3)
THREE = ("start a", "start b", "start c", "pass 1")
WITH_A_SPARE = "world nodes=3 min=2 max=2"
STANDS = f"pass {KEPT_BEATS + 0.5}"


def asked_of(made: World) -> set[str]:
    """Return the nodes that must not pay for the last loss; empty if it asks nothing."""
    lost = made.witness.lost_worlds.lost
    return {each.slot for each in (*lost.members, *lost.spares)} if lost else set()


def judged(made: World) -> tuple[int, int]:
    """Return how often R12 was armed, and how often excused."""
    strength = made.witness.judge.strength
    return strength.armed["R12"], strength.excused["R12"]


def a_loss() -> LostWorlds:
    """Return what is remembered of WORLD, which was lost while a and b were well."""
    made = LostWorlds(1.0, fenced=False)
    made.lost = LostWorld(WORLD.world_id, WORLD.job, 3.0, {node("a"), node("b")}, set())  # type: ignore[arg-type]
    return made


# --- what is found


@pytest.mark.parametrize("loss", ["empty", "older 0.5", "older 60"])
def test_a_loss_while_all_is_well_stops_nobody(loss: str) -> None:
    made = then(both_running(), "pass 12", loss)
    assert asked_of(made) == {"a", "b"}
    then(made, "pass 5")
    assert asked_of(made) == set()
    assert judged(made) == (1, 0)
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}
    assert (made.counts["a world goes on across a loss"], made.witness.ends.total()) == (2, 0)
    assert made.counts["restored over an older copy" if loss == "older 0.5" else "restored by a survivor"] == 1


def test_R12_a_world_that_is_not_restored_is_found() -> None:
    made = both_running()
    for slot in "ab":
        hangs(at(made, slot))
    with pytest.raises(Violation, match="R12: round 0 was lost, which a#1, b#1 ran: it does not stand again"):
        then(made, "empty", STANDS)


def test_R12_workers_that_are_stopped_are_found() -> None:
    made = then(both_running(), "empty", "pass 0.5")
    b = at(made, "b")
    b.agent = evolve(b.agent, group=evolve(b.group, phase=Phase.STOPPING))
    with pytest.raises(Violation, match="R12: round 0 was lost while b was well: it has stopped"):
        then(made, STANDS)


def test_R12_a_spare_that_is_seated_no_longer_is_found() -> None:
    made = world(*THREE, "empty", "pass 0.001", setting=WITH_A_SPARE)
    assert asked_of(made) == {"a", "b", "c"}
    hangs(at(made, "c"))
    with pytest.raises(Violation, match="R12: round 0 was lost while c was well: it has no seat"):
        then(made, STANDS)


def test_a_spare_is_a_spare_again() -> None:
    made = world(*THREE, "empty", STANDS, setting=WITH_A_SPARE)
    assert judged(made) == (1, 0)


def test_a_world_whose_end_was_written_before_is_not_asked_for() -> None:
    made = world(*THREE, "notice b 1", "pass 0.0015", "older 0.5", setting=WITH_A_SPARE)
    assert made.witness.lost_worlds.lost is None
    assert at(made, "a").group.phase is Phase.RUNNING  # it has not heard of the end
    then(made, "older 0")
    assert asked_of(made) == set()
    assert judged(made) == (1, 1)


def test_R12_a_member_that_flees_from_a_world_that_was_restored_is_found() -> None:
    fled = edited(WORLD, "a", End(0, Why.FENCED))
    with pytest.raises(Violation, match="R12: round 0 was lost while a#1 was well; it fled from it"):
        a_loss().wrote(Wrote(node("a"), WORLD, End(0, Why.FENCED), fled))


def test_the_end_of_a_job_is_no_flight_from_a_world_that_came_after_one() -> None:
    losses, after_a_flight = a_loss(), evolve(WORLD, ended=Ended(0, Why.FENCED, node("a")))
    cancel = Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED))
    losses.wrote(Wrote(node("a"), after_a_flight, cancel, edited(after_a_flight, "a", cancel)))
    assert losses.lost is None


# --- nothing that is done to one node excuses another


@pytest.mark.parametrize("trouble", ["fail a", "crash a", "drain a", "cut a 9", "pause a 9", "slow a 1", "start a"])
def test_what_befalls_a_node_excuses_that_node(trouble: str) -> None:
    made = then(both_running(), "empty", trouble)
    assert asked_of(made) == {"b"}
    converges(made)
    assert judged(made) == (1, 0)


@pytest.mark.parametrize("trouble", ["cut a 9", "pause a 9", "slow a 1", "pause-waiter a 9"])
def test_a_node_that_is_not_well_when_the_store_is_lost_is_excused(trouble: str) -> None:
    assert asked_of(then(both_running(), trouble, "empty")) == {"b"}


def test_what_has_no_effect_excuses_nobody() -> None:
    assert asked_of(then(both_running(), "hang a", "empty", "fail a")) == {"a", "b"}


@pytest.mark.parametrize("trouble", ["hang a", "twice a 1", "unstartable a", "succeed a"])
def test_what_does_a_well_node_no_harm_excuses_nobody(trouble: str) -> None:
    made = then(both_running(), trouble, "empty")
    assert asked_of(made) == {"a", "b"}
    then(made, STANDS)
    assert judged(made) == (1, 0)


@pytest.mark.parametrize("trouble", ["lose-reply a", "late-write a 1", "late-reply a 1", "gap a"])
def test_a_question_that_is_lost_gives_the_world_the_time_to_ask_again(trouble: str) -> None:
    for operations in ((trouble, "empty"), ("empty", trouble)):
        made = then(both_running(), *operations)
        assert made.witness.lost_worlds.lost is not None
        late = made.witness.lost_worlds.lost.due_at - made.future.now
        assert late == pytest.approx(KEPT_BEATS + ANSWER_TIMEOUT_S + 1)
        then(made, STANDS, STANDS)
        assert judged(made) == (1, 0)


def test_while_the_store_is_away_nothing_can_stand_in_it() -> None:
    for operations in (("outage 5", "empty"), ("empty", "outage 5"), ("empty", "full 5")):
        made = then(both_running(), *operations, "pass 4")
        assert asked_of(made) == {"a", "b"}
        then(made, STANDS)
        assert judged(made) == (1, 0)


def test_a_world_that_is_lost_again_has_its_time_again() -> None:
    made = then(both_running(), "empty", "empty", "pass 2.9", "empty", "pass 1")
    assert asked_of(made) == {"a", "b"}
    then(made, "pass 3")
    assert judged(made) == (1, 0)


def test_R12_is_kept_where_the_world_stood_and_ended_for_another_reason() -> None:
    cancelled = Close(Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED))
    for edit in (Evict(frozenset({node("a")})), End(0, Why.FAILED), cancelled):
        losses = a_loss()
        losses.wrote(Wrote(node("b"), WORLD, edit, edited(WORLD, "b", edit)))
        assert losses.lost is None
        assert not losses.strength.excused


# --- what excuses a loss


def test_R12_asks_nothing_of_an_open_round_or_a_closed_job() -> None:
    assert judged(world("start a", "pass 12", "empty", setting="world nodes=2 min=2 max=2")) == (0, 0)
    assert judged(world("start a", "empty", "pass 1")) == (0, 0)
    closed = then(both_running(), "cancel", "pass 0.003", "empty")
    assert closed.store.past[-1][1].closed
    assert judged(closed) == (0, 0)


def test_R12_is_excused_where_no_member_is_well() -> None:
    made = then(both_running(), "cut a 9", "empty", "cut b 9")
    assert judged(made) == (1, 1)
    then(made, "empty")
    assert judged(made) == (1, 1)


def test_R12_is_excused_where_a_fenced_node_cannot_be_heard() -> None:
    setting = "world nodes=2 min=2 max=2 fence=3"
    for operations in (("empty", "outage 1"), ("outage 1", "empty"), ("lose-reply a", "gap b", "empty", "cut a 1")):
        assert judged(world(*TWO, *operations, setting=setting)) == (1, 1)
    assert judged(world(*TWO, "empty", setting=f"{setting} tail=3")) == (1, 1)
    unheard = world(*TWO, setting=setting)
    for slot in "ab":
        at(unheard, slot).heart.beaten_at -= 2.0
    assert judged(then(unheard, "empty")) == (1, 1)
    assert asked_of(world(*TWO, "cut-in a 1", "pass 1", "empty", setting=setting)) == {"b"}
    assert judged(world(*TWO, "empty", STANDS, setting=setting)) == (1, 0)
    assert asked_of(world(*TWO, "empty", "lose-reply a", setting=setting)) == {"b"}


def test_R12_is_excused_while_a_fenced_node_has_missed_a_change() -> None:
    missed = (*TWO, "gap a", "start c", "pass 0.1")
    assert asked_of(world(*missed, "empty", setting="world nodes=3 min=2 max=2 fence=3")) == {"b"}
    assert asked_of(world(*missed, "pass 1.9", "empty", setting="world nodes=3 min=2 max=2 fence=3")) == {"a", "b", "c"}
    assert asked_of(world(*missed, "empty", setting="world nodes=3 min=2 max=2")) == {"a", "b", "c"}


def test_R12_is_excused_where_an_agent_of_another_version_writes_first() -> None:
    made = world(
        "start a", "start b", "pass 5", "start-next b", "older 5", "pass 3", setting="world nodes=2 min=2 seed=2"
    )
    assert (made.store.format, judged(made), asked_of(made)) == (1, (1, 1), set())


def test_R12_is_excused_where_strangers_complete_a_world_or_end_the_job() -> None:
    strangers = evolve(running("c"), life=Life("new"), job="new", completed_in=Life("new"))
    cancel = Close(Verdict(Ending.CANCELLED, 0, node("c"), Why.ASKED))
    for edit, after in ((Arrive(profile("c")), strangers), (cancel, evolve(strangers, closed=cancel.verdict))):
        losses = a_loss()
        losses.wrote(Wrote(node("c"), None, edit, after))
        assert (losses.lost, losses.strength.excused["R12"]) == (None, 1)


def test_a_job_that_is_begun_at_the_empty_store_excuses_nothing_yet() -> None:
    losses = a_loss()
    losses.wrote(Wrote(node("c"), None, Arrive(profile("c")), arrived(register("2"), "c")))
    losses.wrote(Wrote(node("b"), None, Restore(WORLD, "again"), restored(Restore(WORLD, "again"), None)))
    assert losses.lost is not None


def test_R12_is_excused_when_the_store_came_back_with_another_job() -> None:
    made = both_running()
    other = evolve(running("y z"), life=Life("new"), job="new", completed_in=Life("new"))
    made.store.past.clear()
    made.store.past.append((0.5, other))
    made.does(Operation(Kind.OLDER, span=0.1))
    assert judged(made) == (1, 1)


def test_R12_is_excused_while_an_agent_of_another_job_lives() -> None:
    made = world("start a", "pass 1", "cut a 20", "empty", "start b", "pass 12", "empty", setting="world max=1")
    assert asked_of(made) == set()
    converges(made)
