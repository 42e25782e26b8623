"""`elastic cancel`: a job ends on all its nodes, each says who ended it, and nobody without the token can."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from jobs import CONF, Jobs, alive, asked, codes, run
from launches import PROGRAMS, Launcher

from elastic.adapters.rendezvous.operator import operator_name
from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore.seal import seal
from elastic.core.rendezvous import Status

TOKEN = "correct horse battery staple"


def test_a_cancelled_job_ends_everywhere_and_says_who_cancelled_it(job: Jobs, launch: Launcher) -> None:
    two = job("2:2", "--max-restarts=3")
    agents = two.nodes("ab")
    told = run(agents)
    agents.append(two.node("c"))
    two.reaches(lambda state: state.census[Status.WAITING] == 1)
    cancels = partial(asked, two, launch=launch, command="cancel")
    nobody = cancels(run_id="nobody")
    assert nobody.returncode == 3 and "has no job nobody; it has " in nobody.stderr
    assert f"; it has {two.run_id}" in cancels(run_id=f"{two.run_id[:-1]}-").stderr
    assert alive(told)
    cancelled = cancels()
    assert cancelled.returncode == 0, cancelled
    assert "is cancelled in round 0: 3 nodes told to stop" in cancelled.stdout
    if two.etcd:  # a TCPStore ends with its job
        shown = asked(two, "--json", launch=launch)
        assert (shown.returncode, json.loads(shown.stdout)["state"]) == (1, "cancelled")
        assert (cancels().returncode, "was cancelled in round 0 already" in cancels().stdout) == (0, True)
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [1, 1, 1]
    assert not alive(told)
    for name, one in zip("abc", ended, strict=True):
        assert f"CANCELLED by an operator ({operator_name()}) in round 0" in one.err
        ending = two.report(name)["ending"]
        assert (ending["state"], ending["why"]) == ("cancelled", "by an operator")
        assert ending["by"].startswith(f"{operator_name()}#")


def test_workers_are_stopped_as_at_sigterm(tcpstore_job: Jobs, launch: Launcher) -> None:
    one = tcpstore_job("1:2", "--last-call=0")
    agent = one.node("a", program=(PROGRAMS / "signalled.py", "end"))
    agent.hears(1)
    assert asked(one, launch=launch, command="cancel").returncode == 0
    assert agent.ends().code == 1
    assert [told.words for told in agent.hears(1)] == ["got SIGTERM"]


def test_without_the_token_nobody_cancels(tcpstore_job: Jobs, launch: Launcher, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    sealed = tcpstore_job("1:2", "--last-call=0", conf=f"{CONF}token_file={token},", seal=seal(Secret(TOKEN.encode())))
    agent = sealed.node("a")
    told = run([agent])
    for variables in ({}, {"ELASTIC_STORE_TOKEN": "another horse, another staple"}):
        refused = asked(sealed, launch=launch, command="cancel", **variables)
        assert (refused.returncode, refused.stdout) == (3, "") and "token" in refused.stderr
    assert alive(told)
    assert asked(sealed, f"--rdzv-conf=token_file={token}", launch=launch, command="cancel").returncode == 0
    assert agent.ends().code == 1
