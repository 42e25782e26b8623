"""What becomes of newcomers: one that cannot start workers is its own trouble, and one that comes back may be late."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import CONF, Jobs, codes, end, only_in, run_from, slots, worlds
from launches import PROGRAMS

MISSING = "nowhere/stay.py"
NO_FILE = f"{MISSING}: no such file in "
FEW = ("sh", "-c", 'ulimit -n 60; exec "$@"', "sh")
"""Enough descriptors for an agent, and too few for its workers."""
TROUBLES = {
    "program": ((), (MISSING,), (), NO_FILE),
    "interpreter": (
        ("--no-python",),
        ("{}/stay.py",),
        (),
        "its interpreter /nowhere/python (first line) does not exist",
    ),
    "descriptors": (("--nproc-per-node=64",), (PROGRAMS / "stay.py",), FEW, "too many open files: the workers take "),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@only_in("tcpstore")
def test_a_newcomer_that_cannot_start_workers_leaves_a_job_that_runs_as_it_is(
    job: Jobs, tmp_path: Path, trouble: str
) -> None:
    options, program, under, reason = TROUBLES[trouble]
    executable = tmp_path / "stay.py"
    executable.write_text("#!/nowhere/python\n")
    executable.chmod(0o755)
    made = job("1:2", "--max-restarts=0")
    a = made.node("a")
    a.hears(1)
    b = made.node("b", *options, program=[str(each).format(tmp_path) for each in program], under=under).ends()
    assert b.code == 4, b.err
    assert any(f"this node stays out of job {made.run_id}: " in line and reason in line for line in b.lines), b.err
    (ended,) = end([a])
    assert ended.code == 0 and "0 restarts" in ended.err, ended.err
    report = made.report("a")
    assert [reason in each["reason"] for each in report["unfit"]] == [True] and not report["failures"]
    assert "stays out" in ended.err and report["ending"]["round"] == 0


@pytest.mark.parametrize("order", ["the good one first", "the bad one first"])
@only_in("tcpstore")
def test_a_job_that_needs_the_node_ends_at_once_on_both(job: Jobs, order: str) -> None:
    made, agents = job("2", "--max-restarts=3"), {}
    for name in "ab" if order == "the good one first" else "ba":
        agents[name] = made.node(name, program=(MISSING,)) if name == "b" else made.node(name)
        if name == "a" and order == "the good one first":
            made.reaches(lambda state: "a" in slots(state))
    for name in "ab":
        ended = agents[name].ends()
        assert ended.code == 1 and "FAILED: cannot start the program (no restart used)" in ended.lines, ended.err
        (cause,) = (line for line in ended.lines if line.startswith("  first cause   "))
        assert "b: " in cause and NO_FILE in cause
        report = made.report(name)
        assert (report["restarts"], len(report["failures"]), report["unfit"]) == (0, 1, [])


@only_in("tcpstore")
def test_a_bad_node_that_comes_first_waits_for_others_if_their_number_is_open(job: Jobs) -> None:
    made = job("1:2", "--last-call=1000")
    b = made.node("b", program=(MISSING,))
    b.says("this node cannot start workers: ")
    a = made.node("a", "--last-call=0")
    assert b.ends().code == 4
    a.hears(1)
    assert end([a])[0].code == 0


@only_in("tcpstore")
def test_a_member_whose_program_goes_away_leaves_the_others_to_go_on(job: Jobs, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    text = "import stage\nstage.tell('begins')\nstage.wait_for_gate(stage.round)\nraise SystemExit(stage.round == 0)\n"
    script.write_text(text)
    gone = tmp_path / "b" / "train.py"
    gone.parent.mkdir()
    gone.write_text(text)
    made = job("1:2", "--max-restarts=1", "--last-call=60")
    a, b = made.node("a", program=(script,)), made.node("b", program=(gone,))
    for agent in (a, b):
        agent.hears(1)
    gone.unlink()
    a.open_gate(0)
    out = b.ends()
    assert out.code == 4 and f"this node stays out of job {made.run_id}: {gone}: no such file" in out.lines, out.err
    alone = made.reaches(lambda state: state.complete and len(state.participants) == 1)
    assert worlds(run_from(alone.round, [a])) == {(alone.round, "begins")}
    a.open_gate(alone.round)
    ended = a.ends()
    assert ended.code == 0 and "1 restart" in ended.err, ended.err


@only_in("tcpstore")
def test_a_bad_node_that_serves_the_store_serves_it_until_the_others_are_gone(job: Jobs) -> None:
    made = job("1:2", "--last-call=1000", own_store=True)
    b = made.node("b", program=(MISSING,))
    b.says("this node cannot start workers: ")
    a = made.node("a", "--last-call=0")
    b.says("its agent serves the store for 1 node, until they are gone")
    a.hears(1)
    assert not b.has_ended()
    assert end([a])[0].code == 0
    assert b.ends().code == 4


@only_in("tcpstore")
def test_a_latecomer_that_cannot_start_is_no_success(job: Jobs) -> None:
    made = job("1")
    assert end([made.node("a")])[0].code == 0
    assert made.node("b", program=(MISSING,)).ends().code == 4


FINISHED = CONF + "finished=ok,"


@only_in("tcpstore")
def test_a_member_that_is_started_again_after_the_success_ends_well_where_that_is_asked_for(
    job: Jobs, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import stage\nstage.tell('begins')\nstage.wait_for_gate()\n")
    made = job("2", conf=FINISHED)
    both = made.nodes("ab", program=(script, "--lr=1"))
    for agent in both:
        agent.hears(1)
    assert codes(end(both)) == [0, 0]
    again = made.node("a", program=(script, "--lr=1")).ends()
    line = f"nothing ran here: job {made.run_id} had succeeded with the last start of this node (finished=ok)"
    assert again.code == 0 and again.lines[-1] == line, again.err
    assert made.report("a")["here"]["exit_code"] == 0
    for name, words in (("a", ["--lr=2"]), ("c", ["--lr=1"]), ("a", [])):
        other = made.node(name, program=(script, *words)).ends()
        assert other.code == 3 and "nothing ran here: the job had succeeded" in other.err, other.err
    script.write_text("# another one")
    assert made.node("a", program=(script, "--lr=1")).ends().code == 3
    made.conf = CONF
    script.write_text("import stage\nstage.tell('begins')\nstage.wait_for_gate()\n")
    assert made.node("a", program=(script, "--lr=1")).ends().code == 3
