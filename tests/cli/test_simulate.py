"""`elastic simulate`: the table, the shrunk violation with its files, and every run again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from processes import children_of, comes_true

from elastic.cli import simulate_options
from elastic.cli.main import run
from elastic.cli.render import node_runs, recoveries
from elastic.core.properties.law import Strength
from elastic.core.sim.features import FEATURES, PAIRS
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import tell
from elastic.core.sim.sometimes import SOMETIMES
from elastic.core.sim.story import parsed
from elastic.core.sim.swarm import DRAWN, Shape
from elastic.core.sim.tally import LAWS, MANY, Recovered, Tally

PROPERTIES = '''\
"""Of a user's own."""
import os
import signal

from elastic.core import sim


def one_failure(judge, fact):
    """A property that the built-in ones do not have."""
    if isinstance(fact, sim.Wrote) and fact.after.failures > 1:
        yield "one failure", f"{fact.after.failures} failures"


def interrupts(judge, fact):
    """Press Ctrl-C in the middle of the first run."""
    if isinstance(fact, sim.Started) and not pressed:
        pressed.append(True)
        os.kill(os.getpid(), signal.SIGINT)
    return ()


def kills(judge, fact):
    """End the process as the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


pressed = []
number = 1
'''

SLIPS = """\
def raises(judge, fact):
    yield 1 / 0


def too_few(judge):
    return ()


def true(judge, fact):
    return True


def alone(judge, fact):
    yield "a sentence"


def nameless(judge, fact):
    yield "", "a sentence"


def exits(judge, fact):
    raise SystemExit(0)


told = []


def remembers(judge, fact):
    if not told:
        told.append(fact)
        yield "once", "the first of all facts"
"""

Simulate = Callable[..., tuple[int, str]]


FINDS = ("--seed=3", "--runs=4", "--jobs=1", "--nodes=2", "--faults=start,fail", "--property=own.py:one_failure")
"""A few small runs, of which one breaks the user's property."""


@pytest.fixture
def simulate(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Return a runner of the command in a directory of its own; it returns the exit code and the output."""
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(PROPERTIES)
    Path("bad.py").write_text("1 +\n")
    Path("slips.py").write_text(SLIPS)
    Path("absent.py").write_text("import nothing_of_this_name\n")
    Path("ends.py").write_text("raise SystemExit(3)\n")
    Path("own.txt").write_text("pass 1\n")

    def simulated(*arguments: str) -> tuple[int, str]:
        code: Any = run(["simulate", *arguments])
        return code, capfd.readouterr().out

    return simulated


@pytest.fixture
def mistaken(simulate: Simulate, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def line(*arguments: str) -> str:
        capfd.readouterr()
        code: Any = run(["simulate", *arguments])
        out, err = capfd.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1), (code, out, err)
        return err.removeprefix("elastic: ").removesuffix("\n")

    return line


def timeless(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key not in ("took_s", "steps_per_s", "writes_per_s")}


# --- many runs


def test_the_closing_table_shows_what_was_done_and_what_was_seen(simulate: Simulate) -> None:
    code, out = simulate("--runs=12", "--seed=0x5eed", "--jobs=1", "-v")
    lines = out.splitlines()
    assert code == 0
    assert re.fullmatch(r" 12 runs · [\d,]+ steps · 0\.\d simulated hours · [\d,]+ steps/s · \d+\.\d s", lines[0])
    assert lines[1] == " violations  none"
    assert lines[2] == " seed        0x5eed · any run again: elastic simulate --seed 0x5eed --only RUN"
    assert re.fullmatch(r" register    \d+ writes, [\d,]+ a second · \d+ rounds completed", lines[3])
    assert re.search(r"\n faults      [a-z-]+ \d+  [a-z-]+ \d+  ", out)
    assert re.search(rf' seen        \d+ of {len(SOMETIMES)} "sometimes" \(rarest: [^)]+, \d runs?\)\n', out)
    assert " never seen  " in out
    assert re.search(r"\n armed       S1 \d+  S2 \d+  ", out)
    assert re.search(r"\n excused     .*L3 \d+ of \d+", out)
    assert "\n NEVER ARMED " in out
    short = simulate("--runs=12", "--seed=0x5eed", "--jobs=1")[1]
    assert "\n NEVER ARMED " in short and not re.search(r"\n (armed|excused) ", short)


def test_a_fresh_seed_is_printed(simulate: Simulate) -> None:
    first, second = (simulate("--runs=1", "--jobs=1", "--faults=none")[1].splitlines()[2] for _ in range(2))
    assert re.fullmatch(r" seed        0x[0-9a-f]+ · .* --seed 0x[0-9a-f]+ --only RUN", first)
    assert first != second


def test_a_fault_that_was_asked_for_and_never_happened_is_named(simulate: Simulate) -> None:
    out = simulate("--runs=3", "--jobs=1", "--faults=unstartable,crash", "--operations=0")[1]
    assert "\n never done  crash, unstartable\n" in out
    assert "never done" not in simulate("--runs=3", "--jobs=1", "--operations=0")[1]


def test_the_table_and_the_data_say_how_often_each_pair_of_features_met(simulate: Simulate) -> None:
    given = ("--runs=3", "--seed=3", "--jobs=1", "--operations=0", "--with=links,echoes")
    assert re.search(
        rf"\n features    \d+ of {len(PAIRS)} pairs met \(rarest: [a-z-]+ and [a-z-]+, 0 runs\)\n", simulate(*given)[1]
    )
    pairs = json.loads(simulate(*given, "--json")[1])["pairs"]
    assert list(pairs) == [",".join(pair) for pair in PAIRS]
    assert pairs["links,echoes"] == 3


def test_every_world_has_the_features_that_were_asked_for(simulate: Simulate) -> None:
    simulate("--seed=3", "--only=1", "--with=reserves,links", "--story=x.story")
    setting = parsed(Path("x.story").read_text().splitlines()).setting
    assert setting.links and setting.reserves


def test_the_result_is_the_same_on_one_core_and_on_several(simulate: Simulate) -> None:
    alike = (*FINDS, "--runs=40", "--json")
    (one_code, one), (two_code, two) = simulate(*alike, "--jobs=1"), simulate(*alike, "--jobs=2")
    assert one_code == two_code == 1
    assert timeless(json.loads(one)) == timeless(json.loads(two))


def test_runs_stop_after_the_steps_that_were_asked_for(simulate: Simulate) -> None:
    told = json.loads(simulate("--steps=2000", "--seed=3", "--jobs=1", "--json")[1])
    before = json.loads(simulate(f"--runs={told['runs'] - 1}", "--seed=3", "--jobs=1", "--json")[1])
    assert before["steps"] < 2000 <= told["steps"]


def test_the_data_says_how_often_each_sometimes_fired(simulate: Simulate) -> None:
    told = json.loads(simulate("--runs=8", "--seed=3", "--jobs=1", "--json")[1])
    assert list(told["sometimes"]) == list(SOMETIMES)
    assert told["never"] == [what for what, often in told["sometimes"].items() if not often["runs"]]
    assert list(told["laws"]) == list(LAWS)
    assert told["unarmed"] == [number for number, often in told["laws"].items() if not often["armed"]]
    assert (told["runs"], told["violations"], told["first"]) == (8, [], None)


def test_a_table_says_how_long_recoveries_took(simulate: Simulate) -> None:
    given = ("--runs=12", "--seed=0x5eed", "--jobs=1", "--recoveries")
    head, *lines = simulate(*given)[1].split("\n\n")[1].splitlines()
    assert head.split("  ")[0].strip() == "after"
    assert any(re.match(r" start +\d+ +\d+ +\d+\.\d\d s .* \d+% of \d+\.\d s +\d+$", line) for line in lines)
    assert lines[-1] == "  elastic simulate --seed 0x5eed --only RUN"
    told = json.loads(simulate(*given, "--json")[1])["recoveries"]
    assert [each["times"] for each in told if each["after"] == ["start"]] != []
    assert all(each["closest"]["took_s"] <= each["closest"]["may_s"] for each in told)


def test_a_table_of_recoveries_names_the_pairs_that_came_closest_to_their_bound() -> None:
    tally = Tally(recoveries={(f"a{n:02}", "b"): [Recovered(n, float(n), 100.0, False)] for n in range(30)})
    lines = recoveries.lines(tally, "elastic simulate")
    assert lines[2].split()[0] == "a29,"
    assert lines[-2:] == ["  and 10 pairs more: --json", "  elastic simulate"]
    still = Tally(recoveries={(): [Recovered(3, 0.0, 9.0, False)], (MANY,): [Recovered(3, 1.0, 9.0, True)]})
    assert [line.split("  ")[0] for line in recoveries.lines(still, "x")[2:4]] == [" no fault", " three or more"]


def test_ctrl_c_ends_the_campaign_in_order_with_its_table(simulate: Simulate) -> None:
    code, out = simulate("--seed=3", "--jobs=1", "--property=own.py:interrupts")
    assert code == 130
    assert out.startswith(" 1 run · ")


@pytest.mark.parametrize("faults", ["-pause,-cut", "crash,fail", "all", "none"])
def test_the_command_that_tells_a_run_again_has_the_options_that_shape_it(simulate: Simulate, faults: str) -> None:
    shaped = f"--nodes=3 --min=2 --max=3 --faults={faults} --with=links,reserves --operations=9 --backend=lease"
    assert f"elastic simulate {shaped} --seed 0x3 --only RUN\n" in simulate(*shaped.split(), "--seed=3", "--runs=1")[1]


# --- a violation


def test_a_violation_is_shrunk_written_and_told_with_the_command_that_replays_it(simulate: Simulate) -> None:
    code, out = simulate(*FINDS)
    assert code == 1
    table, found = out.split("\n\n", 1)
    number = re.search(r" violations  one failure in \d+ runs? \(first: (\d+)\)", table)
    assert number
    stem = f"one-failure-{number[1]}"
    assert found.startswith(" VIOLATION   one failure: 2 failures\n")
    assert re.search(rf"run {number[1]} · shrunk from \d+ operations to \d+\n", found)
    assert f" replay      elastic simulate --property=own.py:one_failure --replay {stem}.story\n" in found
    story = Path(f"{stem}.story").read_text()
    assert all(f"   {line}\n" in found for line in story.splitlines())
    fails = (Kind.FAIL, Kind.KILL_WORKER)
    assert [each.kind in fails for each in parsed(story.splitlines()).operations].count(True) == 2
    assert "one failure: 2 failures" in Path(f"{stem}.svg").read_text()


def test_a_property_of_a_working_directory_that_was_removed_is_a_mistake(
    simulate: Simulate, gone: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """Under a name of its own: a property is loaded once in a process."""
    assert run(["simulate", "--property=gone.py:one_failure"]) == 2
    assert capfd.readouterr().err == "elastic: --property=gone.py:one_failure: no such file or directory\n"


def test_the_printed_command_replays_the_violation(simulate: Simulate) -> None:
    out = simulate(*FINDS)[1]
    again = re.search(r"replay      elastic simulate (.*)\n", out)
    assert again
    code, told = simulate(*again[1].split())
    assert code == 1
    assert " VIOLATION   one failure: 2 failures\n" in told


def test_the_story_goes_to_the_file_of_the_option(simulate: Simulate) -> None:
    simulate(*FINDS, "--story=x.story", "--picture=x.svg")
    assert sorted(each.name for each in Path().iterdir() if each.suffix in (".story", ".svg")) == ["x.story", "x.svg"]


def test_a_story_of_a_campaign_without_a_violation_is_not_written_and_the_table_says_so(simulate: Simulate) -> None:
    why = "no run breaks a law; --only RUN writes that of one run"
    assert simulate("--runs=1", "--jobs=1", "--story=x.story", "--picture=x.svg")[1].endswith(
        f" story       not written: x.story: {why}\n picture     not written: x.svg: {why}\n"
    )
    assert not Path("x.story").exists() and not Path("x.svg").exists()


def test_beside_json_a_line_says_what_was_not_written(simulate: Simulate, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--runs=1", "--jobs=1", "--story=x.story", "--picture=x.svg", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["first"] is None
    why = "no run breaks a law; --only RUN writes that of one run"
    assert err == f"elastic  story not written: x.story: {why}\nelastic  picture not written: x.svg: {why}\n"
    (found,) = json.loads(simulate(*FINDS, "--json")[1])["violations"][:1]
    story = Path(f"one-failure-{found['run']}.story")
    story.unlink()
    story.mkdir()
    for given in (FINDS, (*FINDS, f"--only={found['run']}")):
        capfd.readouterr()
        assert run(["simulate", *given, "--json"]) == 1
        out, err = capfd.readouterr()
        assert json.loads(out) and err.endswith(f"elastic  story not written: {story}: is a directory\n")


def test_a_story_that_is_there_is_no_name_for_the_story_of_a_campaign(
    simulate: Simulate, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its reader wants it told; and what an earlier campaign has found is not lost to a later one."""
    simulate("--seed=3", "--only=1", "--story=one.story")
    before = Path("one.story").read_text()
    capfd.readouterr()
    assert run(["simulate", "--story=one.story"]) == 2
    remedy = "write --replay=one.story to tell it, or name a new file for that of a violation"
    assert capfd.readouterr() == ("", f"elastic: --story=one.story: is a story already; {remedy}\n")
    simulate("--replay=one.story", "--story=one.story")
    simulate("--seed=3", "--only=1", "--story=one.story")
    assert Path("one.story").read_text() == before


@pytest.mark.parametrize("content", [b"import torch\n", b"\xff\xfe", b"worldly\n"])
def test_a_story_is_not_written_over_a_file_of_another_kind(
    simulate: Simulate, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("train.py").write_bytes(content)
    assert run(["simulate", "--seed=3", "--only=1", "--story=train.py"]) == 2
    assert capfd.readouterr().err == "elastic: --story=train.py: is there already, and is no story; name a new file\n"
    assert Path("train.py").read_bytes() == content


def test_a_file_that_is_no_text_is_no_story(simulate: Simulate, capfd: pytest.CaptureFixture[str]) -> None:
    Path("x.story").write_bytes(b"world\n\xff")
    assert run(["simulate", "--replay=x.story"]) == 2
    assert capfd.readouterr().err == "elastic: --replay=x.story: is no text: its byte 7 (0xff) is not UTF-8\n"


def test_files_are_utf_8_whatever_the_locale_is(tmp_path: Path) -> None:
    script = (
        "-X utf8=0 -m elastic simulate --seed=3 --runs=40 --jobs=1 --only=1 --picture=x.svg --story=x.story".split()
    )
    foreign = {**os.environ, "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"}
    ended = subprocess.run([sys.executable, *script], cwd=tmp_path, env=foreign, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert "·" in (tmp_path / "x.svg").read_text("utf-8")


def test_a_story_that_cannot_be_written_is_printed_all_the_same(simulate: Simulate) -> None:
    given = FINDS
    file = json.loads(simulate(*given, "--json")[1])["violations"][0]["run"]
    story = Path(f"one-failure-{file}.story")
    story.unlink()
    story.mkdir()
    code, out = simulate(*given)
    assert code == 1
    assert f" story       not written: {story}: is a directory\n" in out


def test_each_law_has_a_sentence() -> None:
    assert node_runs.sentence_of("G2") == (
        "must hold: No node joins with a worker alive, except into MOVING, and none that is drained, or knows the verdict."
    )
    assert node_runs.sentence_of("V1") == "must hold: In a complete round no seat is EXPECTED."
    assert node_runs.sentence_of("my own") is None


# --- one run, told


def test_only_tells_the_same_run_as_the_campaign(simulate: Simulate) -> None:
    each = [json.loads(simulate("--seed=3", f"--only={run}", "--json")[1]) for run in range(4)]
    told = json.loads(simulate("--seed=3", "--runs=4", "--jobs=1", "--json")[1])
    assert sum(one["steps"] for one in each) == told["steps"]
    assert sum(one["writes"] for one in each) == told["writes"]


def test_a_run_is_told_line_by_line(simulate: Simulate) -> None:
    code, out = simulate("--seed=3", "--only=1")
    assert code == 0
    assert re.match(r" {5}0\.000 s  [a-e] +starts\n", out)
    assert re.search(r"\n no violation · [\d,]+ steps, \d+ writes, \d+\.\d s simulated\n$", out)


def test_a_told_run_can_be_written_and_replayed(simulate: Simulate) -> None:
    told = simulate("--seed=3", "--only=1", "--story=one.story", "--picture=one.svg")[1]
    again = simulate("--replay=one.story")[1]
    assert told.split("\n no violation")[0] == again.split("\n no violation")[0]
    assert tell(parsed(Path("one.story").read_text().splitlines())).violation is None
    assert ElementTree.parse("one.svg").getroot().tag.endswith("svg")


def test_a_told_run_with_a_violation_is_told_to_its_end_and_then_shrunk(simulate: Simulate) -> None:
    many = json.loads(simulate(*FINDS, "--json")[1])
    first = many["violations"][0]
    code, out = simulate(*FINDS, f"--only={first['run']}")
    assert code == 1
    assert f" VIOLATION   {first['fact']}\n" in out
    assert "shrunk from" in out


def test_a_story_that_is_replayed_is_named_in_the_command_that_replays_it(simulate: Simulate) -> None:
    Path("two.story").write_text("world nodes=1 max=1\nstart a\npass 1\nfail a\npass 1\nfail a\n")
    code, out = simulate("--replay=two.story", "--property=own.py:one_failure")
    assert code == 1
    assert " replay      elastic simulate --property=own.py:one_failure --replay two.story\n" in out


def test_a_node_of_a_story_that_is_not_in_its_world_is_named(
    simulate: Simulate, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("z.story").write_text("world nodes=3\nstart a\npass 1\nfail z\n")
    assert run(["simulate", "--replay=z.story"]) == 2
    assert "--replay=z.story: there is no node z in this world (a to c)\n" in capfd.readouterr().err


# --- what could not be meant

MISTAKES = [
    ("--nodes=0", "--nodes=0: write a whole number, 1 or more"),
    ("--nodes=5000", "--nodes=5000: at most 4096 nodes"),
    ("--min=6", "--min=6: there are 5 nodes; write --nodes=6 too"),
    ("--min=3 --max=2", "--min=3: the minimum is above the maximum (2); write --max=3 too"),
    ("--seed=x", "--seed=x: write a number from 0 to 2^64 - 1, like 0x5eed"),
    ("--seed=-1", "--seed=-1: write a number from 0 to 2^64 - 1, like 0x5eed"),
    ("--with=links,etcd", f"--with=links,etcd: 'etcd' is no feature; write some of {', '.join(FEATURES)}"),
    ("--backend=etcd", "--backend=etcd: write cas or lease"),
    ("--property=own.py", "--property=own.py: write FILE.py:FUNCTION"),
    ("--property=none.py:f", "--property=none.py:f: no such file or directory"),
    ("--property=own.txt:f", "--property=own.txt:f: is no Python file"),
    ("--property=bad.py:f", "--property=bad.py:f: is no Python file: invalid syntax (line 1)"),
    ("--property=own.py:nothing", "--property=own.py:nothing: has no function 'nothing'"),
    ("--property=own.py:number", "--property=own.py:number: has no function 'number'"),
    (
        "--property=absent.py:f",
        "--property=absent.py:f: ModuleNotFoundError: No module named 'nothing_of_this_name' (line 1)",
    ),
    (
        "--property=ends.py:f",
        "--property=ends.py:f: ends the program when it is imported; put that under if __name__ == '__main__':",
    ),
    ("--only=1", "--only: a run of which seed? write --seed=SEED too, as it was printed"),
    (
        "--only=1 --seed=1 --recoveries",
        "--recoveries: is a table of many runs; leave out --only and --replay",
    ),
    ("--only=1 --seed=1 --replay=x", "--replay and --only: a story is one run already; leave one of them out"),
    ("--replay=x --nodes=9", "--nodes: is for runs that are drawn; leave it out, or --replay"),
    ("--faults=crash --replay=x", "--faults: is for runs that are drawn; leave it out, or --replay"),
    ("--replay=none.story", "--replay=none.story: no such file or directory"),
    ("--replay=own.txt", "--replay=own.txt: line 1: 'pass 1': the first line says `world`, with its settings"),
    (
        "--picture=/nowhere/x.svg",
        "--picture=/nowhere/x.svg: no file can be written there; name a file in a directory that exists",
    ),
    ("--node=3", "--node: no such option; did you mean --nodes? (elastic simulate --help lists them)"),
]


@pytest.mark.parametrize(("given", "answer"), MISTAKES, ids=[given for given, _ in MISTAKES])
def test_a_mistake_is_answered_with_option_value_and_remedy(
    mistaken: Callable[..., str], given: str, answer: str
) -> None:
    assert mistaken(*given.split()) == answer


@pytest.mark.parametrize(("given", "likely"), [("crush", "crash"), ("zzz", "crash, pause, kill")])
def test_an_unknown_fault_is_answered_with_those_that_are_most_like_it(
    mistaken: Callable[..., str], given: str, likely: str
) -> None:
    all_of_them = f"(--help has all {len(DRAWN)})"
    assert (
        mistaken(f"--faults={given}")
        == f"--faults={given}: {given!r} is no fault; write one of {likely} … {all_of_them}"
    )


@pytest.mark.parametrize(
    ("name", "slip"),
    [
        ("raises", "ZeroDivisionError: division by zero (line 2)"),
        ("too_few", "TypeError: too_few() takes 1 positional argument but 2 were given"),
        ("true", "TypeError: 'bool' object is not iterable"),
        ("alone", "TypeError: 'a sentence' is no pair of text"),
        ("nameless", "TypeError: a finding has no name"),
        ("exits", "SystemExit: 0 (line 22)"),
    ],
)
@pytest.mark.parametrize("given", ["--runs=3 --jobs=1", "--runs=3 --jobs=2", "--seed=3 --only=0 --json"])
def test_an_error_in_a_property_is_a_mistake_and_no_violation(
    mistaken: Callable[..., str], given: str, name: str, slip: str
) -> None:
    assert mistaken(*given.split(), f"--property=slips.py:{name}") == (
        f"--property=slips.py:{name}: {slip}; it is called with the judge and a fact, and yields pairs of text: a name and "
        "a sentence"
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_property_imports_the_modules_beside_it(
    simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = tmp_path / f"laws{jobs}"
    folder.mkdir()
    (folder / f"most{jobs}.py").write_text("NOTHING = ()\n")
    (folder / "own.py").write_text(f"from most{jobs} import NOTHING\n\n\ndef quiet(judge, fact):\n    return NOTHING\n")
    code, out = simulate("--seed=7", "--runs=3", f"--jobs={jobs}", f"--property={folder}/own.py:quiet")
    assert code == 0
    assert " violations  none\n" in out


def test_a_process_that_is_killed_is_told_in_one_line_and_is_no_violation(mistaken: Callable[..., str]) -> None:
    assert mistaken("--seed=7", "--jobs=2", "--property=own.py:kills") == (
        "--jobs=2: one of these processes was killed, by the out-of-memory killer or by a property, after 0 runs of seed "
        "0x7; write --jobs=1"
    )


@pytest.mark.usefixtures("simulate")
def test_a_property_that_remembers_outside_of_the_judge_is_a_mistake(capfd: pytest.CaptureFixture[str]) -> None:
    code: Any = run(["simulate", "--runs=1", "--jobs=1", "--property=slips.py:remembers"])
    assert code == 2 and "a property remembers in judge.notes" in capfd.readouterr().err


ALL = frozenset(DRAWN)
LISTS = [
    ("all", ALL),
    ("none", frozenset()),
    ("crash,fail", frozenset((Kind.CRASH, Kind.FAIL))),
    ("-pause", ALL - {Kind.PAUSE}),
    ("all, -pause, -cut", ALL - {Kind.PAUSE, Kind.CUT}),
    ("crash,fail,-fail", frozenset((Kind.CRASH,))),
    ("", ALL),
]


@pytest.mark.parametrize(("text", "kinds"), LISTS, ids=[text or "nothing" for text, _ in LISTS])
def test_faults_are_listed_or_left_out(text: str, kinds: frozenset[Kind]) -> None:
    assert simulate_options.faults(text) == kinds


# --- the words


def test_a_law_that_many_runs_with_all_faults_never_armed_is_a_warning() -> None:
    tally = Tally(runs=10_000, sometimes=(), strength=Strength(Counter(dict.fromkeys(LAWS, 1))), pairs=Counter(PAIRS))
    assert node_runs.shows_enough(Shape(), tally)
    del tally.strength.armed["R6"]
    assert not node_runs.shows_enough(Shape(), tally)
    table = "\n".join(node_runs.found(tally, (), node_runs._warning(tally), strengths=False))
    assert " NEVER ARMED R6 (a restore over the register of another job)\n" in table
    assert " WARNING     1 thing that must be seen never were" in table


def test_a_pair_of_features_that_many_runs_with_all_faults_never_showed_is_a_warning() -> None:
    armed = Strength(Counter(dict.fromkeys(LAWS, 1)))
    tally = Tally(runs=10_000, sometimes=(), strength=armed, pairs=Counter(PAIRS[1:]))
    assert not node_runs.shows_enough(Shape(), tally)
    assert node_runs._warning(tally).startswith("1 thing that must be seen never were")


def test_a_sometimes_that_many_runs_with_all_faults_never_showed_is_a_warning() -> None:
    assert not node_runs.shows_enough(Shape(), Tally(runs=10_000))
    assert node_runs.shows_enough(Shape(), Tally(runs=9_999))
    assert node_runs.shows_enough(Shape(faults=ALL - {Kind.GAP}), Tally(runs=10_000))


def test_a_story_s_file_is_named_by_what_it_breaks_and_the_run() -> None:
    assert node_runs.stem("V10", 4117) == "v10-4117"
    assert node_runs.stem("S9 strong", 3) == "s9-strong-3"


def test_simulate_does_not_import_torch() -> None:
    program = (
        "import sys; from elastic.cli.main import run; run(['simulate', '--runs=1']); print('torch' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.endswith("\nFalse\n")


def test_a_sigterm_to_the_process_group_prints_the_table_as_ctrl_c_does(tmp_path: Path) -> None:
    """`timeout` signals the workers as well; their death must not look like a broken pool."""
    command = [sys.executable, "-m", "elastic", "simulate", "--nodes=2", "--jobs=2", "--runs=1000000"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as running:
        try:
            assert comes_true(
                lambda: len(children_of(running.pid)) > 2
            )  # its workers, and who looks after what they share
            os.killpg(running.pid, signal.SIGTERM)
            out, err = running.communicate()
        finally:
            running.kill()
    assert (running.returncode, "Traceback" in err) == (143, False)
    assert " violations  none\n" in out
