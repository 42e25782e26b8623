"""Worker groups for tests. Node a has two workers in a world with node b, and real events lead it to a phase."""

from __future__ import annotations

from attrs import evolve
from worlds import LIFE, node

from elastic.core.group import Alone, Group, Settings, begin, transition
from elastic.core.group.state import (
    Beaten,
    Checked,
    Closed,
    Command,
    Elapsed,
    Event,
    Exited,
    Exiting,
    Gone,
    Noticed,
    Over,
    Raised,
    Ready,
    ReadyToLeave,
    Reaped,
    Refused,
    Signalled,
    Unstartable,
)
from elastic.core.world import (
    Ending,
    Endpoint,
    Generation,
    Member,
    Notice,
    Profile,
    Verdict,
    Why,
    World,
    WorldId,
    world_of,
)

FENCED = Settings(fence=3.0)
CHECKED = Settings(checks=True)
FIT = Checked(True, "", 0.0)


ALONE = Settings(alone=Alone(2, frozenset({76, 79}), frozenset({71}), frozenset({79})))


def world(round: int = 0, workers: int = 2, generation: int = 0) -> World:
    members = (Member(node(name), Profile(Endpoint("h", 1), workers)) for name in "ab")
    return world_of(WorldId(LIFE, round), tuple(members), generation=Generation("job", generation))


def ready(round: int = 0, at: float = 0.0, generation: int = 0) -> Ready:
    return Ready(world(round, generation=generation), at)


def over(round: int = 0, at: float = 0.0) -> Over:
    return Over(round, Why.FAILED, node("b"), at, Generation("job", round + 1))


def lost(round: int = 0, at: float = 0.0) -> Over:
    """Return the end of a round by the loss of a node."""
    return Over(round, Why.LOST, node("b"), at, Generation("job", 0))


def closed(ending: Ending = Ending.CANCELLED, at: float = 0.0) -> Closed:
    return Closed(Verdict(ending, 0, node("b"), Why.ASKED), at)


def refused(why: Why = Why.TIMEOUT, at: float = 0.0) -> Refused:
    return Refused(why, "text", at)


def beat(sent_at: float = 0.0, at: float | None = None) -> Beaten:
    return Beaten(sent_at, sent_at if at is None else at)


def exited(local_rank: int = 0, code: int = 0, at: float = 0.0) -> Exited:
    return Exited(local_rank, code, at, at)


def noticed(deadline_s: float = 60.0, at: float = 0.0, known: bool = True) -> Noticed:
    return Noticed(Notice(deadline_s, "a test"), at, known)


def led(*events: Event, settings: Settings | None = None) -> Group:
    """Return the group after these events."""
    group, _ = begin(Group(node("a"), settings or Settings()), 0.0)
    for event in events:
        group, _ = transition(group, event)
    return group


def commands(group: Group, *events: Event) -> tuple[Command, ...]:
    """Return the commands that these events bring, one event after the other."""
    told: list[Command] = []
    for event in events:
        group, more = transition(group, event)
        told += more
    return tuple(told)


RUN = (ready(), beat())
FAIL = (*RUN, exited(0, 1, at=1.0))
SUCCEED = (*RUN, exited(0), exited(1))
RAISE = (*RUN, Raised(0, 1.0, 1.0))
ECHO = (*RUN, Raised(0, 1.0, 1.0, is_echo=True))
ALL_GONE = (exited(0, 1), exited(1, -15, at=1.1), Reaped(1.1))

GROUPS: dict[str, Group] = {
    "checking": led(settings=CHECKED),
    "checking, cause unknown": led(FIT, *FAIL, exited(1, -15), Reaped(2.0), settings=CHECKED),
    "stopping, cause elsewhere": led(FIT, *FAIL, over(), settings=CHECKED),
    "stopping, cause here": led(FIT, *FAIL, Over(0, Why.FAILED, node("a"), 1.0), settings=CHECKED),
    "leaving, unfit": led(Checked(False, "text", 0.0), settings=CHECKED),
    "joining": led(),
    "joining again": led(*FAIL, exited(1, -15), Reaped(2.0)),
    "held": led(ready()),
    "held, for the last try": led(ready(), Elapsed(700.0)),
    "held by an old heartbeat": led(ready(), beat(0.0, 2.0)),
    "held, fenced, and long unheard": led(beat(0.0), ready(at=5.0), settings=FENCED),
    "running": led(*RUN),
    "running, one has succeeded": led(*RUN, exited(0)),
    "running, fenced": led(*RUN, settings=FENCED),
    "running, drained": led(*RUN, noticed()),
    "running, drained, one is ready": led(*RUN, noticed(), ReadyToLeave(0, 1.0)),
    "running alone": led(*RUN, settings=ALONE),
    "moving": led(*RUN, lost(), settings=ALONE),
    "moving, failed": led(*RUN, lost(), exited(0, 71), settings=ALONE),
    "moving, succeeded": led(*SUCCEED, lost(), settings=ALONE),
    "moving, all are missing": led(*RUN, lost(), exited(0, 76), exited(1, 76), settings=ALONE),
    "moving, failed, to be checked": led(
        FIT, *RUN, lost(), exited(0, 71), exited(1, 71), settings=evolve(ALONE, checks=True)
    ),
    "moving, fenced": led(*RUN, lost(), settings=evolve(ALONE, fence=3.0)),
    "running alone, one has heard": led(*RUN, exited(0, 79), settings=ALONE),
    "barrier, all have heard": led(*RUN, exited(0, 79), exited(1, 79), settings=ALONE),
    "barrier, all have heard, to be checked": led(
        FIT, *RUN, exited(0, 79), exited(1, 79), settings=evolve(ALONE, checks=True)
    ),
    "barrier alone": led(*SUCCEED, settings=ALONE),
    "stopping on the way": led(*RUN, lost(), Elapsed(3.0), settings=evolve(ALONE, fence=3.0)),
    "stopping": led(*FAIL),
    "stopping, drained": led(*RUN, noticed(), exited(0, 1, at=1.0)),
    "stopping, killed": led(*RUN, over(), settings=Settings(grace=0.0)),
    "stopping, one is left": led(*FAIL, exited(1, -15)),
    "stopping, closed": led(*RUN, closed()),
    "stopping, refused": led(*RUN, refused()),
    "stopping, cannot start for now": led(*RUN, Unstartable("no memory", 0.0, passes=True)),
    "leaving, cannot start": led(*RUN, Unstartable("no such file", 0.0)),
    "stopping, one raised": led(*RAISE),
    "stopping, one that raised is left": led(*RAISE, exited(1, -15)),
    "stopping, an echo": led(*ECHO),
    "stopping, an echo, and nobody lives": led(*ECHO, *ALL_GONE),
    "stopping, an echo, drained, and nobody lives": led(*RUN, noticed(), *ECHO[2:], *ALL_GONE),
    "stopping, one began to end before an echo": led(*RUN, Exiting(1, 0.5, 0.5), *ECHO[2:]),
    "running alone, one raised": led(*RAISE, settings=ALONE),
    "moving, one raised": led(*RUN, lost(), RAISE[-1], settings=ALONE),
    "barrier": led(*SUCCEED),
    "barrier, drained": led(*SUCCEED, noticed()),
    "barrier with an end": led(*SUCCEED, settings=Settings(barrier_timeout=10.0)),
    "leaving, unawaited": led(*SUCCEED, Elapsed(99.0), settings=Settings(barrier_timeout=10.0)),
    "leaving with workers": led(*RUN, Signalled(15, 1.0)),
    "leaving with workers, register knows": led(*RUN, Signalled(15, 1.0), Gone(1.1)),
    "leaving, one raised": led(*RAISE, noticed(300.0, at=1.1)),
    "leaving, drained": led(*RUN, noticed(1.0, at=1.0)),
    "leaving without workers": led(Signalled(15, 1.0)),
    "leaving from stopping": led(*FAIL, Signalled(15, 1.0)),
    "ended by a verdict": led(*SUCCEED, closed(Ending.SUCCEEDED)),
    "ended by a signal": led(Signalled(2, 1.0), Gone(1.0)),
    "ended by a drain": led(noticed(1.0), Gone(1.0)),
    "ended by a refusal": led(refused()),
}
"""Each phase, in every condition that may make a difference."""

EVENTS: dict[str, Event] = {
    "ready": ready(),
    "ready again": ready(1),
    "ready in another generation": ready(1, generation=1),
    "over": over(),
    "lost": lost(),
    "over of another round": over(7),
    "closed": closed(),
    "succeeded": closed(Ending.SUCCEEDED),
    "refused": refused(),
    "gone": Gone(2.0),
    "beaten": beat(2.0),
    "beaten late": beat(0.5, 4.0),
    "beaten after a long time": beat(5.1),
    "exited 0": exited(0, at=2.0),
    "exited 1": exited(1, at=2.0),
    "failed 0": exited(0, 1, at=2.0),
    "failed 1, before our signal": exited(1, -9, at=0.5),
    "raised 0": Raised(0, 0.5, 2.0),
    "an echo in 1": Raised(1, 0.5, 2.0, is_echo=True),
    "exiting 1": Exiting(1, 0.5, 2.0),
    "reaped": Reaped(2.0),
    "unstartable": Unstartable("no such file", 2.0),
    "unstartable for now": Unstartable("no memory", 2.0, passes=True),
    "signalled": Signalled(15, 2.0),
    "fit": Checked(True, "", 2.0),
    "unfit": Checked(False, "text", 2.0),
    "noticed": noticed(at=2.0),
    "noticed late": noticed(1.0, at=2.0, known=False),
    "ready to leave": ReadyToLeave(1, 2.0),
    "elapsed soon": Elapsed(0.1),
    "elapsed, after the wait for a cause": Elapsed(1.6),
    "elapsed late": Elapsed(999.0),
}
"""Each kind of event, with every content that may make a difference."""
