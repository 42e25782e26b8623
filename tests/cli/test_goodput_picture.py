"""The picture of goodput: each bar has the time of all nodes in it, by cause."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from traced import PAIR, Agent, Pair, Party, Shared, finished, started
from worlds import node

from elastic.cli.exit_codes import SUCCEEDED
from elastic.cli.main import run
from elastic.cli.mistakes import USAGE
from elastic.cli.render.goodput_picture import COLOURS, HEIGHT, SECOND, bars
from elastic.core.goodput import TRAINING, Book, Entry, Kind, Piece, RoundEnd, booked
from elastic.core.world import Why

SVG = "{http://www.w3.org/2000/svg}"
A, B = node("a"), node("b")


def parts(text: str) -> list[tuple[str, float, float]]:
    """Return the tooltip, x and height of each part of a bar."""
    rects = ElementTree.fromstring(text).iter(f"{SVG}rect")
    told = ((rect.find(f"{SVG}title"), rect) for rect in rects)
    return [
        (title.text or "", float(rect.attrib["x"]), float(rect.attrib["height"]))
        for title, rect in told
        if title is not None
    ]


def test_each_bar_is_as_high_as_nodes_were_there_and_stacked_by_cause() -> None:
    of_a: list[Entry] = [Piece(A, 0, 48 * SECOND, "running", Kind.NONE)]
    of_b: list[Entry] = [
        Piece(B, 0, 5 * SECOND // 10, "waiting", Kind.FIRST),
        Piece(B, 5 * SECOND // 10, SECOND, "stopping", 0, "job"),
        RoundEnd("job", 0, Why.LOST, A),
    ]
    text = bars([(100, of_a), (100, of_b)], booked([*of_a, *of_b]), "two <nodes>")
    found = parts(text)
    assert len(found) == 50
    assert found[:3] == [
        ("0 ms to 1 s: running 1 s, 50.0 %", 96.0, HEIGHT / 2),
        ("0 ms to 1 s: first start 500 ms, 25.0 %", 96.0, HEIGHT / 4),
        ("0 ms to 1 s: loss 500 ms, 25.0 %", 96.0, HEIGHT / 4),
    ]
    assert found[-1][0] == "47 s to 48 s: running 1 s, 100.0 %"
    assert ">2 nodes<" in text and "two &lt;nodes&gt;" in text


@pytest.mark.parametrize(
    ("seconds", "width"),
    [(0.05, "2 ms"), (3, "100 ms"), (3_600, "2 min 0 s"), (30 * 86_400, "24 h 0 min"), (9e9, "364 d 0 h")],
)
def test_a_bar_of_a_longer_job_is_longer(seconds: float, width: str) -> None:
    piece = Piece(A, 7, 7 + round(seconds * SECOND), "running", Kind.NONE)
    (first, *_) = parts(bars([(0, [piece])], booked([piece]), ""))
    assert first[0].startswith(f"0 ms to {width}: ")


def test_a_job_of_no_time_is_an_empty_picture() -> None:
    assert parts(bars([], Book(), "")) == []


def test_each_cause_has_a_colour_of_its_own() -> None:
    assert COLOURS.keys() == {*TRAINING, *(kind.value for kind in Kind if kind is not Kind.NONE)}
    assert len(set(COLOURS.values())) == len(COLOURS) - len(TRAINING) + 1


def written(folder: Path, *agents: Party) -> list[str]:
    files = [folder / f"{agent.name}.ndjson" for agent in agents]
    for file, agent in zip(files, agents, strict=True):
        file.write_bytes(b"".join(agent.lines))
    return [*map(str, files)]


def test_the_command_draws_one_job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pair, svg = finished(), tmp_path / "out.svg"
    assert run(["goodput", *written(tmp_path, pair.a, pair.b), f"--picture={svg}"]) == SUCCEEDED
    text = svg.read_text()
    assert {word.split(": ")[1].split(" ")[0] for word, _, _ in parts(text)} >= {"running", "first", "failure", "end"}
    assert re.sub(r'xmlns="[^"]*"', "", text).count("://") == 0
    capfd.readouterr()
    shared = Shared()
    other = Pair(Agent("c", shared, PAIR), Agent("d", shared, PAIR)).run()
    files = written(tmp_path, started().a, other.a, alone := Agent("e", Shared()))
    assert run(["goodput", *files, f"--picture={svg}"]) == USAGE
    told = f"elastic: --picture={svg}: these traces are of 2 jobs; name those of one\n"
    assert capfd.readouterr() == ("", told), "nothing is printed before"
    assert run(["goodput", *files[:1], *written(tmp_path, alone), f"--picture={svg}"]) == SUCCEEDED


def test_a_picture_that_cannot_be_written_is_a_mistake(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (file,) = written(tmp_path, started().a)
    assert run(["goodput", file, "--picture=/dev/full"]) == USAGE
    out, err = capfd.readouterr()
    assert (out, err.startswith("elastic: --picture=/dev/full: ")) == ("", True)
