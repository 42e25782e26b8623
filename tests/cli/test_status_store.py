"""The lines about a silent store: since when, what goes on meanwhile, and who must act."""

from __future__ import annotations

from narration import Story, two
from worlds import arrived, node, register

from elastic.adapters.report.news import StoreBack, StoreSilent
from elastic.core.group.state import Elapsed, Reaped

REFUSED = "no answer from the store at gpu-01:29400 (Connection refused): it must run there"


def test_a_silent_store_is_reported_after_two_seconds_and_when_it_answers_again() -> None:
    story, _ = two()
    story.status.saw(StoreSilent(REFUSED, story.at(20.0)))
    story.lasts(21.9)
    assert story.out.getvalue().count("\n") == 1
    story.lasts(90.0)
    story.status.saw(StoreBack(story.at(90.4)))
    story.lasts(1000.0)
    assert story.status.until is None
    story.reads(
        """
        elastic  round 0: 2 nodes, 2 workers, started in 100 ms
        elastic  store gpu-01:29400 out of reach for 2 s; workers run on, no node can join or leave meanwhile
                 no answer from the store at gpu-01:29400 (Connection refused): it must run there
        elastic  store gpu-01:29400 out of reach for 62 s; workers run on, no node can join or leave meanwhile
        elastic  store gpu-01:29400 answers again after 70.4 s
        """
    )


def test_a_store_that_answers_within_two_seconds_is_not_reported() -> None:
    story, _ = two()
    story.status.saw(StoreSilent(REFUSED, story.at(20.0)))
    story.status.saw(StoreBack(story.at(21.9)))
    story.lasts(100.0)
    assert story.out.getvalue().count("\n") == 1


def test_each_silence_of_the_store_is_reported_with_its_remedy() -> None:
    story, _ = two()
    for begins in (20.0, 30.0):
        story.status.saw(StoreSilent(REFUSED, story.at(begins)))
        story.lasts(begins + 5.0)
        story.status.saw(StoreBack(story.at(begins + 5.0)))
    assert story.out.getvalue().count("out of reach for 2 s") == 2
    assert story.out.getvalue().count("it must run there") == 2


def test_a_silence_of_the_store_during_another_wait_is_reported_with_its_remedy() -> None:
    """Not before two seconds of silence, and not less because there was advice on the other wait."""
    story = Story(me=node("gpu-01"))
    story.sees(arrived(register("4"), "gpu-01 gpu-02"))
    story.lasts(30.0)
    story.status.saw(StoreSilent(REFUSED, story.at(30.5)))
    story.lasts(40.0)
    story.status.saw(StoreBack(story.at(40.0)))
    story.lasts(45.0)
    story.reads(
        """
        elastic  round 0: waiting for 2 of 4 nodes · here: gpu-01, gpu-02 · not yet seen: 2 · 00:02 of 10:00
                 with --nnodes=2:4 it would start with the 2 that are here in 5 s
        elastic  store gpu-01:29400 out of reach for 2 s; no node can join or leave meanwhile
                 no answer from the store at gpu-01:29400 (Connection refused): it must run there
        elastic  store gpu-01:29400 answers again after 9.5 s
        elastic  round 0: waiting for 2 of 4 nodes · here: gpu-01, gpu-02 · not yet seen: 2 · 00:40 of 10:00
                 with --nnodes=2:4 it would start with the 2 that are here in 5 s
        """
    )


def test_workers_killed_for_a_silent_store_are_reported_with_the_reason() -> None:
    story = Story(fence=3.0)
    story.starts(0.0)
    story.happens(Elapsed(story.at(3.0)))
    story.exits(0, -9, 3.1)
    story.exits(1, -9, 3.1)
    story.happens(Reaped(story.at(3.1)))
    story.starts(9.0, round=1)
    story.reads(
        """
        elastic  round 0: 1 node, 2 workers, started in 0 ms
        elastic  2 workers killed (--on-store-loss=stop): for 3 s no heartbeat reached store gpu-01:29400
        elastic  round 1: 1 node, 2 workers, started · 6.0 s in all
        """
    )


def test_while_its_own_store_starts_the_agent_says_that() -> None:
    story = Story(me=node("gpu-01"))
    story.status.serves_store = True
    story.lasts(2.5)
    story.status.saw(StoreSilent(REFUSED, story.at(5.0)))
    story.lasts(70.0)
    story.status.saw(StoreBack(story.at(70.0)))
    story.sees(arrived(register("4"), "gpu-01 gpu-02"))
    story.lasts(75.0)
    assert [line.strip() for line in story.out.getvalue().splitlines()][:5] == [
        "elastic  store gpu-01:29400 starts on this node · 00:02 of 10:00",
        "elastic  store gpu-01:29400 starts on this node · 01:02 of 10:00",
        REFUSED,
        "elastic  store gpu-01:29400 answers again after 65.0 s",
        "elastic  round 0: waiting for 2 of 4 nodes · here: gpu-01, gpu-02 · not yet seen: 2 · 01:11 of 10:00",
    ]


def test_before_its_store_has_answered_another_node_says_that() -> None:
    story = Story(me=node("gpu-01"))
    story.lasts(3.0)
    assert story.out.getvalue() == "elastic  store gpu-01:29400 has not answered yet · 00:02 of 10:00\n"
