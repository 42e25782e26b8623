"""Metrics for Prometheus: of an agent, and of a job by its status page."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from jobs import STAY, Job, Jobs, codes, end, lose, only_in, run
from launches import ELASTIC, TESTS, TIMEOUT_S, Launcher
from ports import reserved
from prometheus_client.parser import text_string_to_metric_families
from promtools import judged

FORGES = TESTS / "e2e" / "programs" / "forges.py"
Sample = tuple[str, tuple[str, ...]]
"""The name of a sample, and the values of its labels."""
FAILURES = "elastic_failures_total"
AFTERWARDS: dict[Sample, float] = {
    ("elastic_round", ()): 2,
    ("elastic_workers", ()): 1,
    ("elastic_nodes", ("in",)): 1,
    ("elastic_nodes", ("waiting",)): 0,
    ("elastic_restarts_total", ("failed",)): 1,
    ("elastic_restarts_total", ("lost",)): 1,
    (FAILURES, ("a",)): 1,
    ("elastic_store_up", ()): 1,
}
"""What agent and page tell, each in its time, when one of two nodes runs on after a failure and a loss."""


def scraped(port: int) -> tuple[dict[Sample, float], str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples}, text


def until(port: int, claim: Callable[[Mapping[Sample, float]], bool]) -> str:
    """Scrape until this holds; return what was scraped."""
    ends_at = time.monotonic() + TIMEOUT_S
    while True:
        found, text = scraped(port)
        if claim(found):
            return text
        assert time.monotonic() < ends_at, text
        time.sleep(0.05)


def of(found: Mapping[Sample, float], name: str) -> list[float]:
    """Return the values of all samples of this name."""
    return [value for (each, _), value in found.items() if each == name]


@contextmanager
def page(job: Job, port: int, launch: Launcher) -> Iterator[None]:
    place = f"etcd://{job.etcd.endpoints}" if job.etcd else str(job.store)
    words = [ELASTIC, "status", f"--rdzv-endpoint={place}", f"--rdzv-id={job.run_id}", f"--http={port}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=launch.environment) as process:
        try:
            assert process.stdout and process.stdout.readline()
            yield
        finally:
            process.kill()


@only_in("tcpstore")
def test_agent_and_page_tell_of_a_failure_and_a_lost_node(job: Jobs, launch: Launcher, port: int) -> None:
    two = job("1:2", "--last-call=1000", "--max-restarts=3")
    with reserved() as own:
        first = two.node("a", f"--metrics={own}", program=(FORGES, "as told"))
        two.reaches(lambda state: len(state.seats) == 1)
        agents = [first, two.node("b", program=(FORGES, "as told"))]
        run(agents)
        with page(two, port, launch):
            agents[0].open_gate(1)  # its worker fails
            run(agents)
            lose(agents[1])
            run(agents[:1])
            for served in (own, port):
                text = until(
                    served, lambda found: found.items() >= AFTERWARDS.items() and sum(of(found, FAILURES)) == 1
                )
                assert judged("check", "metrics", text=text) == ""
            until(own, lambda found: of(found, "elastic_recovery_seconds_count") == [2, 2, 2])  # stop, rejoin, start
            until(port, lambda found: len(of(found, "elastic_heartbeat_age_seconds")) == (0 if two.etcd else 1))
        assert codes(end(agents[:1])) == [0]


def test_an_agent_s_port_ends_with_it_and_serves_nothing_else(launch: Launcher, port: int) -> None:
    agent = launch(f"--metrics={port}", STAY)
    run([agent])
    until(port, lambda found: ("elastic_round", ()) in found)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=TIMEOUT_S)
    agent.open_gate()
    assert agent.ends().code == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT_S)


def test_a_port_that_is_taken_is_a_mistake(launch: Launcher, port: int) -> None:
    with reserved() as taken:
        first = launch(f"--metrics={taken}", STAY)
        run([first])
        second = launch(f"--metrics={taken}", STAY, traced=False).ends()
        assert second.code == 2 and f"--metrics=127.0.0.1:{taken}: address already in use" in second.err
        first.open_gate()
        assert first.ends().code == 0


def test_without_the_package_the_extra_is_named(launch: Launcher, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['prometheus_client'] = None\n")
    paths = {"PYTHONPATH": f"{tmp_path}:{TESTS}"}
    ended = launch("--metrics=9400", STAY, environment=paths, traced=False).ends()
    remedy = "install elastic-launch as before, with [metrics] behind it"
    assert (ended.code, ended.err) == (2, f"elastic: --metrics: needs the package prometheus-client; {remedy}\n")


def test_without_the_option_an_agent_imports_nothing_of_metrics(launch: Launcher) -> None:
    program = (
        "import sys, elastic.cli.main as main\nassert main.run(['launch', '--no-python', 'true']) == 0\n"
        "print([name for name in sys.modules if 'prometheus' in name or 'web_server' in name or 'metrics' in name])"
    )
    assert launch.command(sys.executable, "-c", program).ends().out == "[]\n"
