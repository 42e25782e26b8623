"""The text of a story: it is read as it was written, and an illegible line is named with its number."""

from __future__ import annotations

from typing import Any

import pytest

from elastic.core.group import Settings as GroupSettings
from elastic.core.rendezvous import Limits, Settings
from elastic.core.sim.kinds import Kind
from elastic.core.sim.story import (
    OPERATIONS_MAX,
    PROGRESS_BEATS,
    QUICK,
    Backend,
    Operation,
    Setting,
    Story,
    StoryError,
    name,
    parsed,
    slot,
)
from elastic.core.world import Node

STORY = Story(
    QUICK.but(nodes=4, min=2, max=4, backend=Backend.LEASE, seed=7, drift=0.001, fence=3.0),
    (
        Operation(Kind.START, "a"),
        Operation(Kind.PASS, span=1.5),
        Operation(Kind.PAUSE, "a", 7.0),
        Operation(Kind.EMPTY),
        Operation(Kind.OUTAGE, span=0.5),
        Operation(Kind.CANCEL),
    ),
)
TEXT = """\
world nodes=4 min=2 max=4 backend=lease seed=7 drift=0.001 fence=3
start a
pass 1.5
pause a 7
empty
outage 0.5
cancel"""


def test_a_story_is_written_with_the_settings_that_differ_from_the_defaults() -> None:
    assert str(STORY) == TEXT
    assert str(QUICK) == "world"


def test_a_story_is_read_as_it_was_written() -> None:
    assert parsed(TEXT.splitlines()) == STORY


def test_comments_and_empty_lines_are_for_the_reader() -> None:
    assert parsed(["# why", "", "world", "  # then", "start a"]) == Story(QUICK, (Operation(Kind.START, "a"),))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no story"),
        ("start a", "line 1: 'start a': the first line says `world`"),
        ("world nods=3", "'nods' is not a setting .known: nodes, min"),
        ("world nodes=x", "line 1"),
        ("world nodes=0", "nodes: 1 to 1e.06, not 0"),
        ("world drift=0.5", "drift: at most 0.1, not 0.5"),
        ("world min=3 max=2", "max_nodes: 3 .min_nodes. to 4096, not 2"),
        ("world fence=9", "fence: 2.5 to 3 s"),
        ("world fence=3 overdue=7", "overdue: with a fence at least grace . fence . 2, 8, not 7"),
        ("world nodes=2 min=3", "min: at most nodes, 2, not 3"),
        ("world nodes=4 min=4 max=4 unit=2 racks=3", "min: at most what segments of 2 in 3 racks make, not 4"),
        ("world racks=2", "segment: 'rack' needs a node_unit above 1"),
        ("world give_up=2 counts_failures=2", "counts_failures: 0 or 1, not 2"),
        ("world counts_failures=1", "counts_failures: only with give_up_after"),
        ("world join=15 last_call=120", "last_call: less than join, 15, not 120"),
        ("world standbys=100", "standbys: less than join, 60, not 100"),
        ("world interval=0.005", "interval: 0.01 to 3600, not 0.005"),
        ("world interval=1e6", "interval: 0.01 to 3600, not 1000000"),
        ("world backend=tape", "line 1"),
        ("world workers=70000", "workers: at most 65536 on a node, not 70000"),
        ("world workers=65535 unlike=9", "workers: at most 65536 on a node, not 65537"),
        ("world nodes=70000 party=70000", "party: 1 to 65536, not 70000"),
        ("world\nexplode a", "line 2: 'explode a': 'explode' is nothing that can be done .known: pass, crash"),
        ("world\nstart", "start takes a slot"),
        ("world\npause a", "pause takes a slot and seconds"),
        ("world\nempty a", "empty takes nothing"),
        ("world\npass -1", "-1 is no span of 0 to"),
        ("world\npass nan", "nan is no span"),
        ("world\npass soon", "line 2"),
        ("{" * 200_000, f"^line 1: '{'{' * 80}': a word of 200,000 characters, and none has more than 80$"),
        ("{" * 81, "a word of 81 characters"),
        ("{" * 80, f"^line 1: '{'{' * 80}': the first line"),
    ],
)
def test_an_illegible_line_is_named_with_its_number(text: str, complaint: str) -> None:
    with pytest.raises(StoryError, match=complaint):
        parsed(text.splitlines())


@pytest.mark.parametrize("line", ["{}", "start {}", "pause {} 7", "pause a {}", "pass {}", "start a {}"])
@pytest.mark.parametrize("word", ["v" * 5_000, "9" * 5_000])
def test_no_error_repeats_a_long_word(line: str, word: str) -> None:
    with pytest.raises(StoryError) as refused:
        parsed(["world", line.format(word)])
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("line", ["{}", "world nodes={}", "world {}=1", "world backend={}", "world counts_failures={}"])
@pytest.mark.parametrize("word", ["v" * 5_000, "9" * 5_000])
def test_no_error_repeats_a_long_word_of_the_setting(line: str, word: str) -> None:
    with pytest.raises(StoryError) as refused:
        parsed([line.format(word)])
    assert len(str(refused.value)) < 200


def test_a_setting_of_one_s_own_counts_in_whole_numbers() -> None:
    for count in ("nodes", "restarts", "give_up", "seed", "attempts", "first_target"):
        with pytest.raises(ValueError, match=f"{count}: a whole number, not 2.5"):
            QUICK.but(**{count: 2.5})


def test_racks_make_segments_and_a_story_has_a_word_for_all_other_limits() -> None:
    text = "world nodes=4 min=2 max=4 restarts=0 give_up=2 counts_failures=1 unit=2 racks=2"
    assert str(parsed([text])) == text
    assert parsed([text]).setting.limits == Limits(2, 4, 0, "", 2, True, 2, "rack")
    assert Setting(nodes=4, limits=Limits(2, 4, node_unit=2, segment="rack"), racks=2).value("unit") == 2
    with pytest.raises(ValueError, match=r"racks: 2 with segments of ''; but\(racks=...\) sets both"):
        Setting(racks=2)


def test_a_story_has_an_end() -> None:
    with pytest.raises(StoryError, match="more than"):
        parsed(["world", *["empty"] * (OPERATIONS_MAX + 1)])


def test_slots_and_nodes_have_short_names() -> None:
    assert [slot(0), slot(25), slot(26), slot(63)] == ["a", "z", "n26", "n63"]
    assert [name(Node("a", 1)), name(Node("a", 2))] == ["a", "a#2"]


def test_the_settings_of_a_story_are_the_machines() -> None:
    assert STORY.setting.rendezvous.limits == STORY.setting.limits
    assert STORY.setting.group.fence == 3.0
    assert Setting(barrier=2.0).rendezvous.barrier_timeout == 2.0
    assert Setting().group.fence is None
    assert QUICK.but(give_up=2, interval=2.0).rendezvous.progress_after == PROGRESS_BEATS * 2.0


def test_a_world_s_defaults_are_production_s() -> None:
    assert Setting().rendezvous == Settings(Setting().limits)
    assert Setting().group == GroupSettings()


def test_a_span_is_written_as_it_is_read() -> None:
    text = "world grace=3.0000001\npass 3600.021\npass 0.02"
    assert str(parsed(text.splitlines())) == text


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((Kind.CRASH,), "crash takes a slot, not ''"),
        ((Kind.EMPTY, "a"), "empty takes no slot, not 'a'"),
        ((Kind.PAUSE, "a", -1.0), "-1 is no span of 0 to 1e.06 seconds"),
        ((Kind.PAUSE, "a", float("nan")), "nan is no span"),
        ((Kind.CRASH, "a", 2.0), "2 is no span for crash, which takes none"),
    ],
)
def test_an_operation_that_makes_no_sense_is_refused(given: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Operation(*given)
