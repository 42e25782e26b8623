"""The shortest stories in which torch breaks a property that our agents keep.

`python tests/peer/report.py show NAME` runs one with both and prints all that happens. test_torch_violates.py pins them.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen
from torchworld import Peers

from elastic.core.sim.story import Story, parsed

WORDS: Mapping[str, str] = {
    "S2": "all who run a world hold the same one",
    "S3": "ranks are dense",
    "two worlds": "no world starts while a node that is well runs an older one",
    "S14": "the job is closed as done only when every member is done",
    "L2 stuck": "every live node comes to be in the one complete world, a spare, or told",
    "L2 orphan": "no live node runs a world that is over",
    "L2 barrier": "nobody waits at the exit barrier for somebody who cannot come",
    "L3": "nobody is thrown out whose heartbeats came in time",
    "L4": "no more rounds than causes for them",
    "B1": "one budget of restarts, the job's",
    "charged": "a restart is spent by a failure only, not by a node's death",
    "lost": "the others are told of a member's death",
    "seat": "a spare does not take the seat of a live member",
    "close": "an agent's error is not the end of the others' job",
    "verdict": "all members end with the same verdict",
    "spare's verdict": "an agent that never ran ends with the job's verdict",
}
"""The property that a finding breaks. docs/protocol.md defines those with a number."""


@frozen
class Pin:
    """One story, and what it shows."""

    breaks: tuple[str, ...]
    """The findings of torch."""
    lines: str
    """The story, with `;` between its lines."""
    torch: str
    """What torch does."""
    ours: str
    """What our agents do."""
    peers: Peers = field(factory=Peers)

    @property
    def story(self) -> Story:
        return parsed(line.strip() for line in self.lines.split(";"))

    @property
    def short(self) -> str:
        clocks = "".join(f"; clock of {slot} {off:+g} s" for slot, off in self.peers.clocks.items())
        notices = "; workers notice a dead peer" if self.peers.spreads is not None else ""
        return "; ".join(line.strip() for line in self.lines.split(";")) + clocks + notices


PINS: Mapping[str, Pin] = {
    "storm": Pin(
        ("L4", "L2 stuck", "verdict"),
        "world nodes=3 min=2 max=2; start a; start b; pass 3; start c; pass 3; fail a; pass 30",
        "one failure with one spare: three nodes wait for two seats, the third stays in the wait list, and whoever runs"
        " sees a node waiting and restarts: all workers are killed about once a second, for ever",
        "one restart; the spare stays a spare",
    ),
    "clock": Pin(
        ("L3", "S2", "S3"),
        "world nodes=3 min=2 max=3 seed=7; start a; start b; start c; pass 20",
        "a clock that is slow by more than the TTL: its node is thrown out though every heartbeat came in time; who reads"
        " the complete round meanwhile starts with other members, other ranks and another world size",
        "no clock of another host is read; clocks here are up to a day apart",
        Peers(clocks={"b": -7.0}),
    ),
    "late answer": Pin(
        ("S2", "S3"),
        "world nodes=3 min=3 max=3; start c; pass 0.5; start a; pass 0.32; start b; pass 0.32; cut-in a 4.3; pass 30",
        "one answer is late, by less than the TTL: when it comes, its reader takes the oldest heartbeat in it for a death,"
        " and starts the complete round with other members and another size, here 2 with --nnodes 3:3",
        "a complete round is what the register says, and no reader changes it",
    ),
    "pause": Pin(
        ("L2 orphan",),
        "world nodes=3 min=2 max=3; start a; start b; start c; pass 5; pause a 8; pass 60",
        "a node that stood still for longer than the TTL is no participant any more, is not told, and runs on; the others"
        " are not told either, and run on with it",
        "its eviction ends the round; it notices, stops its workers, and returns",
    ),
    "outage": Pin(
        ("two worlds", "L2 orphan"),
        "world nodes=4 min=1 max=4 last_call=1; start a; start b; start c; pass 5; outage 8; pass 5; start d; pass 30",
        "a store that was away for longer than the TTL: whoever reads first holds everybody for dead, itself too, and sends"
        " no heartbeat ever after; a newcomer forms a world of its own beside the one that runs",
        "nobody is thrown out for a silence that nobody could hear; the newcomer is taken in",
    ),
    "mixed": Pin(
        ("verdict", "L2 barrier"),
        "world nodes=2 min=2 max=2 restarts=0; start a; start b; pass 5; succeed a; pass 1; fail b; pass 5",
        "success on one node, failure for good on the other: one waits 300 s at the exit barrier and ends with 0, the other"
        " with 1",
        "both end with 1, at once",
    ),
    "done": Pin(
        ("verdict", "L2 stuck"),
        "world nodes=2 min=2 max=2 restarts=3; start a; start b; pass 5; succeed a; pass 1; fail b; pass 5",
        "the same with restarts left: the failed node waits for a round that cannot open while the other stands at the"
        " barrier; after 300 s one ends with 0, and the other is told that the rendezvous is closed",
        "the done node is called back, and both run again",
    ),
    "newcomer": Pin(
        ("L2 stuck", "verdict", "spare's verdict"),
        "world nodes=3 min=2 max=3; start a; start b; pass 10; succeed a; pass 1; start c; pass 10",
        "a newcomer while one node is done and another still works: the one that works is stopped, and waits with the"
        " newcomer until the barrier's 300 s are over; then both fail, and one of them had only to finish",
        "a newcomer behind a finishing round waits",
    ),
    "slow finish": Pin(
        ("S14",),
        "world nodes=2 min=2 max=2; start a; start b; pass 5; succeed a; pass 305; fail b; pass 5",
        "no fault at all: an agent whose peer works on for 300 s longer closes the job as done; a failure of the peer can"
        " then not be restarted",
        "the barrier has no end: waiting there is free",
    ),
    "budget": Pin(
        ("B1",),
        "world nodes=2 min=2 max=2 restarts=1; start a; start b; pass 5; fail a; pass 10; fail b; pass 10",
        "every agent has a budget of its own: N agents restart N times as often as --max-restarts says",
        "closed FAILED at the second failure",
    ),
    "lost": Pin(
        ("lost",),
        "world nodes=3 min=2 max=3; start a; start b; start c; pass 5; crash c; pass 60",
        "a node's death takes it off the list of participants, and nobody is told: the others run on in a world of three",
        "the round ends two TTL later at the latest, and the others form the next one",
    ),
    "charged": Pin(
        ("charged",),
        "world nodes=3 min=2 max=3; start a; start b; start c; pass 5; crash c; pass 20",
        "where workers notice that a peer is gone and fail, each survivor's agent spends a restart for it",
        "a death spends none; survivors' failures that it caused are refunded",
        Peers(spreads=1.0),
    ),
    "close": Pin(
        ("close",),
        "world nodes=4 min=2 max=3; start a; start b; start c; pass 0.5; crash b; pass 20; start d; pass 70",
        "a node dies between the completion of a round and its start: the others wait 60 s for its key, raise, and close"
        " the job for good, for whoever has come meanwhile too",
        "the others form the next round",
    ),
    "spare": Pin(
        ("spare's verdict",),
        "world nodes=3 min=2 max=2; start a; start b; start c; pass 5",
        "the job succeeds, and the spare ends with 1 (AttributeError in launch_agent)",
        "it ends with 0, as the others",
    ),
    "seat": Pin(
        ("seat",),
        "world nodes=3 min=2 max=2; start a; start b; pass 3; start c; pass 3; fail a; pass 9",
        "seats go to whoever writes first after everybody has left: the spare takes that of a live member",
        "who is on the way back keeps the seat",
    ),
}
