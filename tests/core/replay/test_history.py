"""Several traces as one history: it is ordered by versions, judged as a whole, and lenient where a trace is missing."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol

import pytest
from attrs import evolve
from groups import noticed
from traced import Agent, Pair, Shared, finished, restarted, restored, started
from worlds import node

from elastic.core.group import Alone, Phase
from elastic.core.group import Settings as GroupSettings
from elastic.core.group.state import Gone, Reaped, Signalled
from elastic.core.properties import facts
from elastic.core.rendezvous import (
    Drawn,
    Limits,
    Passed,
    Pushed,
    RendezvousState,
    Restore,
    Settings,
    Shown,
    Silent,
    Woke,
    Write,
)
from elastic.core.replay.comparison import Moment, Replayed, replayed
from elastic.core.replay.evidence import _of_agent, _of_client, _of_group, broken
from elastic.core.replay.history import History, histories
from elastic.core.trace.steps import Asked, Started, Stepped, shown

FINISHED = finished()


def history(*agents: Agent) -> History:
    (found,) = histories(replayed(agent.trace) for agent in agents)
    return found


def without(run: Replayed, unwanted: Callable[[Moment], bool]) -> Replayed:
    """Return the run without some moments, as no agent makes it."""
    return evolve(run, moments=tuple(moment for moment in run.moments if not unwanted(moment)))


def unseen(run: Replayed, *versions: int) -> Replayed:
    """As if the register had never shown these."""

    def other(moment: Moment) -> Moment:
        if isinstance(moment.step, Asked) and _version(moment) in versions:
            return evolve(moment, step=evolve(moment.step, fed=Passed()))
        return moment

    return evolve(run, moments=tuple(map(other, run.moments)))


def resaw(run: Replayed, change: Callable[[RendezvousState], RendezvousState]) -> Replayed:
    """Return the run as if the register had shown something else."""

    def other(moment: Moment) -> Moment:
        match moment.step:
            case Asked(Shown(state) | Pushed(state) as input) as asked if state:
                return evolve(moment, step=evolve(asked, fed=evolve(input, state=change(state))))
            case _:
                return moment

    return evolve(run, moments=tuple(map(other, run.moments)))


def of(*runs: Replayed) -> History:
    """Return the history of the job that the first run saw last."""
    state = runs[0].moments[-1].after.held.view.state
    assert state
    return History(state.job, runs)


class Numbered(Protocol):
    number: str


def numbers(found: Numbered | None) -> str | None:
    return found.number if found else None


A, B = replayed(FINISHED.a.trace), replayed(FINISHED.b.trace)


@pytest.mark.parametrize("pair", [started(), restarted(), FINISHED], ids=["started", "restarted", "finished"])
def test_the_history_of_real_agents_breaks_no_property(pair: Pair) -> None:
    assert broken(history(pair.a, pair.b)) is None


def test_all_versions_and_all_writers_are_known_when_all_traces_are_there() -> None:
    found = history(FINISHED.a, FINISHED.b)
    assert list(found.states) == [(1, version, "by a") for version in (1, 2, 3, 4, 5, 6, 7)]
    assert found.missing == ()
    assert [found.writes[where].node.slot for where in found.states] == ["a", "b", "b", "b", "a", "a", "b"]
    assert found.hosts == {node("a"): "a", node("b"): "b"}


@pytest.mark.parametrize("agent", [FINISHED.a, FINISHED.b], ids=["a", "b"])
def test_where_a_trace_is_missing_the_register_s_word_is_taken(agent: Agent) -> None:
    found = history(agent)
    assert broken(found) is None
    assert len(found.writes) < len(found.states)


def test_of_a_node_without_a_trace_it_is_believed_that_its_workers_failed_and_succeeded() -> None:
    pair = started()
    pair.a.shared.watchers.append(pair.a)
    pair.b.exits(9)
    pair.run()
    pair.a.exits(-15)
    pair.run()
    pair.b.exits(0)
    pair.run()
    found = history(pair.a)
    unknown = [version for _, version, _ in found.states if (1, version, "by a") not in found.writes]
    assert (found.missing, unknown) == ((), [2, 3, 4, 6])
    assert broken(found) is None


def test_versions_that_no_trace_shows_are_counted_and_not_judged() -> None:
    found = of(unseen(A, 3, 4))
    assert found.missing == (3, 4)
    assert broken(found) is None


def _version(moment: Moment) -> int:
    state = shown(moment.step)
    return state.version if state else 0


def test_each_job_is_a_history_of_its_own() -> None:
    other = started()
    runs = [replayed(agent.trace) for agent in (FINISHED.a, FINISHED.b, other.a)]
    lonely = Agent("z", Shared())
    jobs = histories([*runs, replayed(lonely.trace), replayed(evolve(lonely.trace, steps=(), lines=()))])
    # all jobs here are begun by a node a, so they have one name
    assert [len(found.runs) for found in jobs] == [3, 2]
    assert jobs[1].states == {}
    assert (jobs[1].missing, broken(jobs[1])) == ((), None)


def test_one_version_is_one_state() -> None:
    other = resaw(B, lambda state: evolve(state, next_order=9) if state.version == 2 else state)
    found = broken(of(A, other))
    assert str(found) == "S7: version 2 is one state for a#1 and another for b#1"


def test_a_state_that_no_write_can_have_made_is_found() -> None:
    def greedy(state: RendezvousState) -> RendezvousState:
        return evolve(state, next_order=9) if state.version == 2 else state

    assert numbers(broken(of(resaw(A, greedy), resaw(B, greedy)))) == "S5"


def test_an_illegal_state_is_found() -> None:
    def unseated(state: RendezvousState) -> RendezvousState:
        return evolve(state, next_order=0)

    assert numbers(broken(of(resaw(A, unseated)))) == "S5"


def test_workers_that_start_while_those_of_a_member_still_run_are_found() -> None:
    unreaped = without(A, lambda moment: bool(moment.before.group.running) and isinstance(moment.step, Stepped))
    assert numbers(broken(of(unreaped, B))) == "S9"


def test_workers_that_start_twice_are_found() -> None:
    doubled = [moment for moment in A.moments for _ in range(1 + isinstance(moment.step, Started))]
    assert numbers(broken(of(evolve(A, moments=tuple(doubled)), B))) == "S17"


def test_a_failure_that_the_register_counts_and_no_worker_of_the_writer_had_is_found() -> None:
    def failing(moment: Moment) -> bool:
        step = moment.step
        return isinstance(step, Stepped) and any(hasattr(command, "died_at") for command in step.commands)

    assert numbers(broken(of(A, without(B, failing)))) == "B4"


def test_a_done_node_without_success_is_found() -> None:
    def barrier(moment: Moment) -> bool:
        return isinstance(moment.step, Stepped) and moment.after.group.phase.value == "barrier"

    assert numbers(broken(of(A, without(B, barrier)))) == "S14b"


def test_a_node_that_leaves_is_not_seated_again() -> None:
    pair = started()
    pair.a.hears(Signalled(15, pair.a.shared.now))
    pair.run()
    left = replayed(pair.a.trace)
    assert any(isinstance(step, Stepped) and isinstance(step.event, Gone) for step in left.trace.steps)
    assert broken(of(left, replayed(pair.b.trace))) is None


def test_points_in_time_are_those_of_one_clock_within_a_boot_and_of_the_wall_between_hosts() -> None:
    shared = Shared()
    near, far = Agent("a", shared), Agent("b", shared, boot="other")
    Pair(near, far).run()
    found = history(near, far)
    assert found.origins == {"boot": near.began_at, "other": pytest.approx(near.began_at)}
    assert found.at(found.runs[1], far.began_at) == pytest.approx(far.began_at - near.began_at)
    assert found.seen_at(found.states[1, 1, "by a"]) > 0


# --- across a loss of the store


def failed_after_the_loss() -> Pair:
    """Let a worker fail in the restored world too, so that both run in round 2."""
    pair = restored()
    pair.b.exits(9)
    pair.run()
    pair.a.exits(-15)
    return pair.run()


LOST = failed_after_the_loss()
OVER = finished(LOST)
LOST_A, LOST_B = replayed(OVER.a.trace), replayed(OVER.b.trace)
LATER = "by a/2"


def since_the_loss(run: Replayed) -> Replayed:
    """Return the run as if its trace had begun after the loss."""
    began = next(at for at, moment in enumerate(run.moments) if _restores(moment) or _epoch(moment) == 2)
    return evolve(run, moments=run.moments[began:])


def _restores(moment: Moment) -> bool:
    match moment.step:
        case Asked(ask=Write(edit=Restore())):
            return True
        case _:
            return False


def _epoch(moment: Moment) -> int:
    state = shown(moment.step)
    return state.life.epoch if state else 0


def test_a_job_whose_store_lost_its_memory_is_one_history() -> None:
    found = history(OVER.a, OVER.b)
    assert [where[:2] for where in found.states][3:8] == [(1, 4), (1, 5), (2, 6), (2, 7), (2, 8)]
    assert found.missing == ()
    assert [len(life) for life in found.lives] == [5, 6]
    restore = found.writes[2, 6, LATER]
    assert (restore.node.slot, type(restore.edit), restore.based_on) == ("a", Restore, None)
    assert broken(found) is None


def test_a_trace_with_a_restore_is_taken_again() -> None:
    assert (LOST_A.differs, LOST_B.differs) == (None, None)
    assert LOST_A.moments[-1].after.held == OVER.a.held


@pytest.mark.parametrize("run", [LOST_A, LOST_B], ids=["who restored it", "who found it restored"])
def test_where_one_trace_of_a_job_that_was_restored_is_missing_the_register_s_word_is_taken(run: Replayed) -> None:
    found = of(run)
    assert len(found.writes) < len(found.states)
    assert broken(found) is None


@pytest.mark.parametrize("runs", [(LOST_A, LOST_B), (LOST_A,), (LOST_B,)], ids=["both", "a", "b"])
def test_of_a_job_of_which_only_the_restored_life_is_known_that_life_s_word_is_taken(
    runs: tuple[Replayed, ...],
) -> None:
    """Failures charged before the restore stay charged, though no trace shows them."""
    found = of(*map(since_the_loss, runs))
    assert [state.life.epoch for (state, *_) in found.lives] == [2]
    assert broken(found) is None


def test_missing_versions_are_counted_in_each_life() -> None:
    found = of(unseen(LOST_A, 3, 7), unseen(LOST_B, 3, 7))
    assert found.missing == (3, 7)
    assert broken(found) is None


def test_a_restore_over_what_no_trace_shows_is_taken_at_its_word() -> None:
    shared = Shared()
    Pair(Agent("a", shared), Agent("b", shared)).run()
    copy = shared.state
    shared.loses(older=copy)
    newcomer = Agent("c", shared)
    newcomer.runs()
    found = of(without(replayed(newcomer.trace), lambda moment: _epoch(moment) == 1))
    assert [where[:2] for where in found.writes] == [(2, 3), (2, 4)]
    assert broken(found) is None


def changed(run: Replayed, change: Callable[[RendezvousState], RendezvousState]) -> Replayed:
    """Return the runs as if the writer had written something else and the register had shown it."""

    def other(moment: Moment) -> Moment:
        match moment.step:
            case Asked(ask=Write(state) as write) as asked:
                return evolve(moment, step=evolve(asked, ask=evolve(write, state=change(state))))
            case _:
                return moment

    return resaw(evolve(run, moments=tuple(map(other, run.moments))), change)


def test_a_restore_that_is_not_what_was_held_is_found() -> None:
    def forgetful(state: RendezvousState) -> RendezvousState:
        return evolve(state, failures=0) if state.version == 6 else state

    assert numbers(broken(of(changed(LOST_A, forgetful), changed(LOST_B, forgetful)))) in ("R7", "B2")
    cut = [without(run, lambda moment: _version(moment) > 6) for run in (LOST_A, LOST_B)]
    assert numbers(broken(of(*(changed(run, forgetful) for run in cut)))) == "R7"


def test_a_failure_that_no_worker_had_is_found_after_a_loss_too() -> None:
    def failing(moment: Moment) -> bool:
        step, state = moment.step, moment.before.held.view.state
        failed = isinstance(step, Stepped) and any(hasattr(command, "died_at") for command in step.commands)
        return failed and state is not None and state.life.epoch == 2

    assert numbers(broken(of(LOST_A, without(LOST_B, failing)))) == "B4"


def test_an_agent_that_met_two_jobs_belongs_to_both() -> None:
    """c and d began a job at the empty store before a and b could restore theirs."""
    pair = started()
    shared = pair.a.shared
    shared.loses()
    Pair(Agent("c", shared), newcomer := Agent("d", shared)).run()
    pair.run()
    assert pair.a.held.view.state == newcomer.held.view.state
    ours, theirs = histories(map(replayed, (pair.a.trace, pair.b.trace, newcomer.trace)))
    assert [run.trace.header.node.slot for run in ours.runs] == ["a", "b"]
    assert [run.trace.header.node.slot for run in theirs.runs] == ["a", "b", "d"]
    assert (ours.job, theirs.job) == ("by a", "by c")
    assert (broken(ours), broken(theirs)) == (None, None)


def test_workers_that_live_through_a_change_of_nodes_belong_to_the_next_world() -> None:
    """b leaves; a's worker runs on in round 1."""
    shared, alone = Shared(), GroupSettings(alone=Alone(1))
    a, b = (Agent(name, shared, Settings(Limits(1, 2, 3)), of_group=alone) for name in "ab")
    pair = Pair(a, b).run()
    b.hears(Signalled(15, shared.tick()))
    b.exits(-15)
    b.hears(Reaped(shared.tick()))
    pair.run()
    shared.now += 60.0
    pair.run()
    assert a.group.world and (a.group.phase, a.group.world.round, a.group.running) == (Phase.RUNNING, 1, frozenset({0}))
    assert broken(history(a, b)) is None


def given_up(slept: bool) -> Replayed:
    """Return the run of an agent that waits for another one in vain; it may have slept for most of that time."""
    shared = Shared()
    agent = Agent("a", shared)
    agent.runs()
    if slept:
        shared.now += 590.0
        agent.sleeps()
        agent.feeds(Passed())
        agent.runs()
    shared.now += 600.0
    agent.feeds(Passed())
    agent.runs()
    return replayed(agent.trace)


def earlier(run: Replayed, last: int, by: float) -> Replayed:
    """Return the run as if its last steps had been taken sooner."""
    sooner = [evolve(moment, at=moment.at - by) for moment in run.moments[-last:]]
    return evolve(run, moments=(*run.moments[:-last], *sooner))


@pytest.mark.parametrize(("last", "number"), [(2, "L7"), (3, "O5")], ids=["gives up", "gives its seat up"])
@pytest.mark.parametrize("slept", [False, True], ids=["awake", "slept"])
def test_a_join_that_was_given_up_too_early_is_found(slept: bool, last: int, number: str) -> None:
    run = given_up(slept)
    assert any(isinstance(moment.step, Asked) and isinstance(moment.step.fed, Woke) for moment in run.moments) is slept
    assert run.ended and broken(of_job(run)) is None
    assert numbers(broken(of_job(earlier(run, last, 20.0)))) == number


def of_job(run: Replayed) -> History:
    (found,) = histories([run])
    return found


def test_a_signal_counts_from_when_it_came_and_not_from_when_the_agent_had_time_for_it() -> None:
    group = SimpleNamespace(node=node("a"), world=None, settings=SimpleNamespace(alone=None))
    moment: Any = SimpleNamespace(before=SimpleNamespace(group=group), after=SimpleNamespace(group=group))
    step: Any = SimpleNamespace(commands=(), at=7.5)
    found = [next(_of_group(moment, event, step)) for event in (Signalled(15, 7.0), Gone(at=7.0))]
    assert [fact.at for fact in found if isinstance(fact, facts.Stepped)] == [7.0, 7.5]


def test_a_notice_is_noted_when_the_register_knows_of_it() -> None:
    pair = started()
    pair.a.hears(noticed(60.0, pair.a.shared.tick(), known=False))
    pair.run()
    run = replayed(pair.a.trace)
    assert [fact for moment in run.moments for fact in _facts(moment) if isinstance(fact, facts.Noted)] == [
        facts.Noted(node("a"))
    ]
    assert broken(of_job(run)) is None


def _facts(moment: Moment) -> list[facts.Fact]:
    return list(_of_client(moment, moment.step.fed, 0.0, 0.0)) if isinstance(moment.step, Asked) else []


def test_a_question_counts_as_asked_when_it_was_asked_and_not_when_its_silence_was_heard() -> None:
    agent = Agent("a", Shared())
    agent.feeds(Drawn(0.0))
    asked_at = agent.client.asked_at
    agent.shared.now += 600.0
    agent.feeds(Silent("no answer"), Passed())
    (given_up,) = (fact for _, fact in _of_agent(replayed(agent.trace), {}) if isinstance(fact, facts.GaveUp))
    assert given_up.tried_at == asked_at < given_up.at - 600.0
