"""`elastic status --http`: a job of real nodes, watched in a real browser."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from attrs import define
from chromium import Tab, tab
from jobs import CONF, Job, Jobs, codes, end, kill, lose, only_in, run
from launches import ELASTIC, TESTS, TIMEOUT_S, Launch, Launcher
from ports import reserved
from processes import comes_true
from seats import seated

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.tcpstore.serving import StoreHost, serve
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address

WIDTHS = (360, 480, 768, 1024, 1440, 1920)
FORGES = TESTS / "e2e" / "programs" / "forges.py"
MARKUP = "<img src=x onerror=\"document.title='obeyed'\"><script>document.title='obeyed'</script>"
OVERLAPS = """
(() => {
  const found = [];
  const page = document.documentElement;
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const apart = (a, b) =>
    a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  const compare = (name, nodes) => {
    const boxes = nodes.filter((node) => node.getClientRects().length).map((node) => node.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => { if (!apart(a, b)) found.push(`${name} overlap`); }));
  };
  compare("sections", all("header, main > section"));
  all("header, main > section").forEach((part) => compare(part.innerText.slice(0, 20), [...part.children]));
  compare("tiles", all("#nodes li"));
  all("#nodes li").forEach((tile) => compare(tile.innerText, all("b, span", tile)));
  compare("failures", all("#failure-list > li"));
  all("#events li, dl").forEach((line) => compare(line.innerText, [...line.children]));
  compare("texts of the picture", all("#picture text"));
  if (page.scrollWidth > page.clientWidth) found.push(`the page is ${page.scrollWidth} wide`);
  for (const node of all("body *:not(svg *)")) {
    if (node.closest(".scrolls, pre, .skip") || !node.getClientRects().length) continue;
    if (node.getBoundingClientRect().right > page.clientWidth + 1) found.push(`${node.tagName} leaves the page`);
    const cut = node.clientWidth && node.scrollWidth > node.clientWidth + 1;
    if (cut && node.matches("button, p, b, span")) found.push(`${node.innerText} is cut`);
  }
  return [...new Set(found)];
})()
"""


@define
class Server:
    """`elastic status --http` that runs."""

    process: subprocess.Popen[str]
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ends(self, signum: int = signal.SIGINT) -> tuple[int, str]:
        """How it ends by a signal: its exit code, and what it said."""
        self.process.send_signal(signum)
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out + err


@contextmanager
def server(store: Address | str, run_id: str, port: int, launch: Launcher, *options: str) -> Iterator[Server]:
    words = [ELASTIC, "status", f"--rdzv-endpoint={store}", f"--rdzv-id={run_id}", f"--http={port}", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=launch.environment)
    with process:
        try:
            assert process.stdout
            assert f"http://127.0.0.1:{port}/" in process.stdout.readline()
            yield Server(process, port)
        finally:
            process.kill()


def page_of(job: Job, port: int, launch: Launcher) -> AbstractContextManager[Server]:
    return server(f"etcd://{job.etcd.endpoints}" if job.etcd else job.store, job.run_id, port, launch)


def fits(page: Tab, widths: Sequence[int] = WIDTHS) -> dict[int, list[str]]:
    """What overlaps or leaves the page, by width; in both colour schemes."""
    found = {}
    for width in widths:
        for scheme in ("light", "dark"):
            page.width(width, scheme)
            if faults := page.run(OVERLAPS):
                found[width] = faults
    return found


def says(text: str, where: str = "body") -> str:
    return f"document.querySelector({json.dumps(where)}).innerText.includes({json.dumps(text)})"


def tile(name: str, look: str) -> str:
    """A claim: this node is shown so."""
    return (
        f"[...document.querySelectorAll('#nodes button.{look}')]"
        f".some((tile) => tile.getAttribute('aria-label').startsWith({json.dumps(name)}))"
    )


@only_in("etcd")
def test_a_browser_follows_a_job_whose_worker_fails_and_whose_node_is_lost_and_returns(
    job: Jobs, launch: Launcher, tmp_path: Path, port: int
) -> None:
    three = job("2:3", "--last-call=1000", "--max-restarts=3")
    agents = three.nodes("abc", program=(FORGES, MARKUP))
    run(agents)
    with page_of(three, port, launch) as served, tab(tmp_path / "browser") as page:
        page.width(1440)
        page.opens(served.address)
        page.until(says("round 0: 3 nodes running", "#sentence"))
        assert all(page.until(tile(name, "running")) for name in "abc")
        page.until(says("No failure is on record", "#failed"))

        agents[1].open_gate(1)  # its worker fails
        page.until(says("1 failure on record", "#failed"))
        page.until(says("round 1: 3 nodes running", "#sentence"))
        page.until(says("b rank 1", "#failure-list"))
        page.until(says("first cause", "#failure-list"))
        page.until(says(f"RuntimeError: {MARKUP}", "#failure-list pre"))
        page.until(says("2 restarts left of 3", "#restarts"))
        page.until(says("round 0 ended: failed", "#events"))
        page.until(says("Where workers were stopped in round 0", "#stacked"))
        page.until(says("rank", "#stacks"))
        assert fits(page) == {}
        run(agents)

        lose(agents[2])
        page.until(says("gone: c", "#events"))
        page.until(says("round 2: 2 nodes running", "#sentence"))
        page.until(says("lost: its agent died", "#nodes"))  # a link has ended: no TTL has passed
        assert page.run(tile("c, lost", "silent"))
        agents[2] = three.node("c", program=(FORGES, MARKUP))
        page.until(says("arrived: c", "#events"))
        page.until(says("3 nodes running", "#sentence"))
        page.until(tile("c", "running"))
        assert not page.run(says("lost", "#nodes"))
        page.until("document.querySelectorAll('#rounds tr').length >= 3")
        page.until("document.querySelector('#picture svg text')")
        assert fits(page) == {}

        ended = end(agents)
        page.until(says("succeeded", "#state"))
        page.until(says("closed: succeeded", "#sentence"))
        assert fits(page) == {}
        assert page.run("document.title").startswith("succeeded")
        assert page.said == []
        code, said = served.ends()
        assert (code, said) == (0, "")
    assert codes(ended) == [0, 0, 0]


def test_the_page_is_for_the_keyboard_and_for_a_screen_reader_too(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path, port: int
) -> None:
    two = tcpstore_job("2", "--nproc-per-node=2")
    agents = two.nodes("ab")
    run(agents, 2)
    with page_of(two, port, launch) as served, tab(tmp_path / "browser") as page:
        page.width(1024)
        page.opens(served.address)
        page.until(tile("b", "running"))
        heard = page.heard()
        for line in ("heading: Nodes", "heading: Failures", "button: a, .*, ranks 0-1", "image: What each node did"):
            assert any(re.match(line, each) for each in heard), (line, heard)
        page.press("Tab")
        assert page.run("document.activeElement.className") == "skip"
        page.press("Tab")
        assert page.run("document.activeElement.getAttribute('aria-label')").startswith("a, ")
        page.press("ArrowRight")
        page.press("Enter")
        page.until(says("ranks 2-3", "#chosen"))
        assert page.run("document.activeElement.getAttribute('aria-pressed')") == "true"
        page.press("Home")
        assert page.run("document.activeElement.getAttribute('aria-label')").startswith("a, ")
        page.press("Tab")
        assert page.run("document.activeElement.id") == "picture"
        assert page.said == []
    assert codes(end(agents)) == [0, 0]


def test_512_nodes_fit(launch: Launcher, shared_store: Address, tmp_path: Path, port: int) -> None:
    backend = TCPStoreBackend(shared_store, "many", SystemClock(), timeout_s=TIMEOUT_S)
    try:
        backend.set(seated(512, 8), None)
        with server(shared_store, "many", port, launch) as served, tab(tmp_path / "browser") as page:
            page.width(1920)
            page.opens(served.address)
            page.until("document.querySelectorAll('#nodes button.silent').length === 512")
            page.until(says("512 nodes running", "#sentence"))
            assert page.run("document.querySelector('#nodes').getBoundingClientRect().height") < 900
            assert fits(page, (360, 1920)) == {}
            page.run("document.querySelector('#nodes li:nth-child(300) button').click()")
            page.until(says("ranks 2392-2399", "#chosen"))
            assert page.said == []
    finally:
        backend.close()


BANNER = "document.querySelector('[role=alert]:not([hidden])')"
SILENT = re.compile(r"The store has not answered for (\d+:\d\d)\. What you see is of \d\d:\d\d:\d\d\.?")
GREY = "getComputedStyle(document.querySelector('#nodes button')).color === 'rgb(66, 74, 83)'"


def silent(page: Tab) -> int:
    """Wait for the banner; return for how many seconds the store has not answered, as it says."""
    page.until(BANNER)
    text = page.run(f"{BANNER}.innerText")
    found = SILENT.fullmatch(text.strip())
    assert found, text
    minutes, seconds = map(int, found[1].split(":"))
    return 60 * minutes + seconds


def test_a_store_that_is_gone_is_the_first_thing_that_is_shown_and_so_is_its_return(
    launch: Launcher, tmp_path: Path, port: int
) -> None:
    with reserved() as number, ExitStack() as stack:
        store, _ = served_at(number, stack)
        with server(store, "many", port, launch) as served, tab(tmp_path / "browser") as page:
            page.width(1440)
            page.opens(served.address)
            page.until(says("2 nodes running", "#sentence"))
            page.until("document.querySelector('#picture rect')")
            assert page.run(BANNER) is None
            stack.close()
            assert silent(page) >= 3
            assert page.run(says("2 nodes running", "#sentence"))
            assert page.run(
                f"{BANNER}.getBoundingClientRect().top < document.querySelector('h1').getBoundingClientRect().top"
            )
            assert page.run("document.body.classList.contains('old')") and page.run(GREY)
            assert any(line.startswith("button: ") and "as it was seen last" in line for line in page.heard())
            page.until("document.querySelector('#picture rect[fill=\"url(#unseen)\"]')")
            assert fits(page, (360, 1440)) == {}
            before = silent(page)
            page.opens("about:blank")
            page.opens(served.address)  # opened during the silence, it counts from when that began
            page.until(says("2 nodes running", "#sentence"))
            assert silent(page) >= before
            served_at(number, stack)
            page.until(says("answers, within", "#store"))
            page.until(f"!{BANNER}")
            page.until(says("the store answers again after", "#events"))
            page.until("!document.body.classList.contains('old')")  # a store that is back is empty at first
            assert page.run("document.querySelectorAll('#rounds tr').length") == 1
            assert page.said == []
            code, said = served.ends(signal.SIGTERM)
            assert (code, said) == (0, "")


def test_a_store_that_stands_still_is_shown_once_a_question_had_no_answer(
    launch: Launcher, tmp_path: Path, port: int
) -> None:
    with reserved() as number, ExitStack() as stack:
        store, host = served_at(number, stack)
        with server(store, "many", port, launch) as served, tab(tmp_path / "browser") as page:
            page.opens(served.address)
            page.until(says("2 nodes running", "#sentence"))
            os.kill(host.pid, signal.SIGSTOP)
            try:
                assert silent(page) >= 5
            finally:
                os.kill(host.pid, signal.SIGCONT)
            page.until(f"!{BANNER}")
            page.until(says("the store answers again after", "#events"))
            assert page.said == []


def age_of(name: str, address: str) -> float:
    """The age of a node's last new heartbeat, as the page's command knows it."""
    with urllib.request.urlopen(f"{address}metrics", timeout=TIMEOUT_S) as answer:
        text = answer.read().decode()
    found = re.search(rf'^elastic_heartbeat_age_seconds\{{node="{name}"\}} (\S+)$', text, re.MULTILINE)
    assert found, text
    return float(found[1])


def test_nodes_that_are_gone_keep_their_tiles_and_say_how_they_went(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path, port: int
) -> None:
    three = tcpstore_job("1:3", "--last-call=1000", conf=f"{CONF}peer_links=false,")
    agents = three.nodes("abc")
    three.reaches(lambda state: state.complete and len(state.members) == 3)
    with page_of(three, port, launch) as served, tab(tmp_path / "browser") as page:
        page.width(1440)
        page.opens(served.address)
        page.until(says("3 nodes running", "#sentence"))
        ages = [age_of("c", served.address)]

        def has_a_new_heartbeat() -> bool:
            ages.append(age_of("c", served.address))
            return ages[-1] < ages[-2]

        assert comes_true(has_a_new_heartbeat)
        lose(agents[2])
        page.until(tile("c, lost: no heartbeat for ", "silent"))
        page.until(says("2 nodes running", "#sentence"))
        agents[1].signal(signal.SIGTERM)
        page.until(tile("b, left", "left"))
        page.until(says("1 node running", "#sentence"))
        assert page.run(tile("c, lost: no heartbeat for ", "silent"))
        assert fits(page, (360, 1440)) == {}
        assert page.said == []
    assert codes(end(agents[:1])) == [0]


def test_after_a_store_came_back_empty_the_page_goes_on_from_what_it_had_seen(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path, port: int
) -> None:
    two = tcpstore_job("2", "--max-restarts=3")
    with reserved() as number, ExitStack() as stack:
        host, two.store = serve(Address("localhost", number), True)
        assert host
        agents = two.nodes("ab", program=(FORGES, "x"))
        run(agents)
        with page_of(two, port, launch) as served, tab(tmp_path / "browser") as page:
            page.opens(served.address)
            page.until(says("round 0: 2 nodes running", "#sentence"))
            agents[1].open_gate(1)
            page.until(says("1 failure on record", "#failed"))
            page.until(says("round 1: 2 nodes running", "#sentence"))
            workers = run(agents)
            host.close()
            silent(page)
            again, _ = serve(two.store, True)
            assert again
            stack.callback(again.close)
            page.until(f"!{BANNER}")
            page.until(says("its nodes have put it back", "#events"))
            page.until(tile("b", "running"))
            assert page.run("[...document.querySelectorAll('#rounds tr')].map((row) => row.firstChild.innerText)") == [
                "1",
                "0",
            ]
            assert page.run(says("1 failure on record", "#failed"))
            kill(workers[0].pid)
            page.until(says("round 2: 2 nodes running", "#sentence"))
            page.until(says("2 failures on record", "#failed"))
            recovery = page.run("document.querySelector('#rounds tr').children[3].innerText")
            assert re.fullmatch(r"\d+ ms|\d\.\d s", recovery), recovery
            run(agents)
            assert codes(end(agents)) == [0, 0]
            assert page.said == []


def served_at(number: int, stack: ExitStack) -> tuple[Address, StoreHost]:
    """A store at this port that has a job of two nodes, and who serves it."""
    host, store = serve(Address("localhost", number), True)
    assert host
    stack.callback(host.close)
    backend = TCPStoreBackend(store, "many", SystemClock(), timeout_s=TIMEOUT_S)
    stack.callback(backend.close)
    backend.set(seated(2, 1), None)
    return store, host


def asked(address: str, method: str = "GET", host: str = "localhost") -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(address, method=method, headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, dict(refused.headers), ""


def test_the_page_asks_no_other_host_and_answers_no_other_site(tcpstore_job: Jobs, launch: Launcher, port: int) -> None:
    one = tcpstore_job("1:2", "--last-call=0")
    agent = one.node("a")
    run([agent])
    with page_of(one, port, launch) as served:
        code, headers, text = asked(served.address)
        assert code == 200 and "://" not in text
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert [asked(served.address, method)[0] for method in ("POST", "PUT", "DELETE")] == [405] * 3
        assert asked(served.address, host="evil.example")[0] == 421
        assert asked(f"{served.address}timeline.svg")[2].startswith("<svg ")
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S):
            assert served.ends()[0] == 0
    assert codes(end([agent])) == [0]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--http=0",), 2, "--http=0: write a port"),
        (("--http=evil host:80",), 2, "--http=evil host:80"),
        (("--http=8080", "--json"), 2, "--http: the page"),
        (("--http=8080",), 3, "has no job"),
    ],
)
def test_a_mistake_is_named(
    options: tuple[str, ...], code: int, says: str, launch: Launcher, shared_store: Address
) -> None:
    words = [ELASTIC, "status", f"--rdzv-endpoint={shared_store}", "--rdzv-id=nobody", *options]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=launch.environment)
    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr, done


def test_a_port_that_is_taken_is_a_mistake(tcpstore_job: Jobs, launch: Launcher) -> None:
    one = tcpstore_job("1:2", "--last-call=0")
    agent: Launch = one.node("a")
    run([agent])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        words = [ELASTIC, "status", f"--rdzv-endpoint={one.store}", f"--rdzv-id={one.run_id}", f"--http={number}"]
        done = subprocess.run(
            words, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=launch.environment
        )
    assert done.returncode == 2 and "name a port that is free" in done.stderr
    assert codes(end([agent])) == [0]
