"""A user's own handlers, rank policy and settings in a simulated world."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from simulated import at, remembers, then, world
from worlds import but

from elastic.core import sim
from elastic.core.caller import Terms, signature
from elastic.core.group import Settings as GroupSettings
from elastic.core.policies import at_most
from elastic.core.rendezvous import Action, Context, Fail, Settings, Sync, Violation, handlers
from elastic.core.world import Why

STORY = sim.parsed(["world nodes=3 max=3", "start a", "start b", "pass 4", "start c", "pass 4"])


def done(own: sim.Own) -> sim.World:
    return sim.tell(STORY, ends=False, own=own).world


def lets_nobody_in(ctx: Context, deadline: float) -> Action:
    """The core's, but newcomers wait for another reason to end the round. It forgets the dead."""
    runs = ctx.state and ctx.state.complete and not ctx.state.closed
    return Sync(math.inf) if runs else handlers.watch(ctx, deadline)


def test_a_user_s_handler_decides_in_the_place_of_the_core_s() -> None:
    ours, theirs = done(sim.Own()).store.register, done(sim.Own({handlers.watch: lets_nobody_in})).store.register
    assert ours and theirs
    assert (ours.round, theirs.round) == (1, 0)


def test_a_world_is_signed_with_the_user_s_rank_policy() -> None:
    policy = at_most(2)
    register = done(sim.Own(policy=policy)).store.register
    assert register and register.complete
    assert register.policy == signature(Terms(policy), register.world) != ""
    assert done(sim.Own()).store.register != register


def test_nodes_have_the_user_s_settings() -> None:
    own = sim.Own(
        settings=lambda given: evolve(given, leave_timeout=1.0), group=lambda given: evolve(given, leave_timeout=2.0)
    )
    for process in done(own).living():
        assert process.held.who.settings == evolve(STORY.setting.rendezvous, leave_timeout=1.0)
        assert process.group.settings == evolve(STORY.setting.group, leave_timeout=2.0)


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        (sim.Own(settings=lambda given: Settings(given.limits)), "join_timeout: is 60.0 by the world's Setting"),
        (sim.Own(settings=lambda given: evolve(given, first_target=1)), "first_target: is 0 by the world's Setting"),
        (sim.Own(group=lambda given: GroupSettings()), "grace: is 3.0 by the world's Setting"),
    ],
)
def test_a_setting_that_the_world_counts_by_is_said_in_one_place(own: sim.Own, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        sim.World(STORY.setting, own=own)


def test_a_handler_is_given_for_one_of_the_core_s() -> None:
    with pytest.raises(ValueError, match="handlers: 'watch' is no handler of the core's"):
        sim.Own({"watch": lets_nobody_in})  # type: ignore[dict-item]


def test_a_policy_is_one_of_the_core_s_kind() -> None:
    with pytest.raises(ValueError, match=r"policy: <function .*> is no Policy of core.policies, as at_most.8. is"):
        sim.Own(policy=lambda world: world)  # type: ignore[arg-type]


def test_a_handler_that_returns_no_action_is_named() -> None:
    def forgets(ctx: Context, deadline: float) -> Action:
        return None  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"forgets at .* returns None, which is no action, as Sync.deadline. is"):
        done(sim.Own({handlers.watch: forgets}))


def test_a_run_is_shrunk_and_drawn_in_the_world_in_which_it_was_found() -> None:
    own = sim.Own({handlers.watch: lets_nobody_in})
    smaller = sim.shrunk(sim.tell(STORY, own=own))
    again, _ = sim.drawn(smaller.story, own=own)
    assert len(smaller.story.operations) < len(STORY.operations)
    assert smaller.violation and again.violation
    assert smaller.violation.number == again.violation.number == "L9"
    assert sim.tell(smaller.story).violation is None


def test_an_operator_is_judged_too() -> None:
    def finds_no_job(ctx: Context, deadline: float) -> Action:
        return Fail(Why.NO_JOB)

    own = sim.Own({handlers.close: finds_no_job})
    run = sim.tell(sim.parsed(["world nodes=1", "start a", "pass 1", "cancel", "pass 1"]), own=own)
    assert str(run.violation) == "O2: an operator is told of no job, and there is one"


def test_V13_a_node_with_a_policy_signs_the_world_that_it_completes() -> None:
    made = world("start a", setting="world nodes=1 max=1 last_call=0")
    remembers(at(made, "a"), but(at(made, "a").held, policy=lambda world: ""))
    with pytest.raises(Violation, match="V13: a completes round 0, and does not sign its world"):
        then(made, "pass 1")
