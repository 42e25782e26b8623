"""Links between agents tell of a death at once. Heartbeats are so far apart here that they could not."""

from __future__ import annotations

import resource
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from jobs import Job, Jobs, alive, asked, codes, end, lose, only_in, run, slots, worlds
from launches import TIMEOUT_S, Launcher
from processes import dies

from elastic.adapters.rendezvous.link_server import PENDING_MAX
from elastic.core.world import Why

SLOW = "peer_links=true,keep_alive_interval=30,upscale_after=0.2,"
"""A node that is silent is dead after three minutes."""
CONNECTIONS, AT_ONCE = 10_000, 50
MEMORY_MAX = 16 * 1024
"""kB. Each connection that waits for its hello takes some; no other does."""


def three(job: Jobs, *options: str) -> Job:
    made = job("2:3", "--last-call=1000", *options, conf=SLOW)
    assert isinstance(made, Job)
    return made


def test_the_others_go_on_at_once_when_an_agent_is_killed(job: Jobs) -> None:
    made = three(job)
    agents = made.nodes("abc")
    told = run(agents)
    agents[1].signal(signal.SIGKILL)
    stay = [agents[0], agents[2]]
    assert worlds(run(stay)) == {(1, "restart 0 of 2 workers")}
    assert dies(told[1].pid)
    state = made.reaches(lambda state: state.complete and state.round == 1)
    assert (state.ended and state.ended.why, state.failures) == (Why.LOST, 0)
    assert codes(end(stay)) == [0, 0]


@only_in("tcpstore")
def test_the_loss_of_all_processes_of_the_first_node_is_seen_at_once(job: Jobs) -> None:
    made = three(job)
    agents = made.nodes("abc")
    run(agents)
    lose(agents[0])
    assert worlds(run(agents[1:])) == {(1, "restart 0 of 2 workers")}
    assert codes(end(agents[1:])) == [0, 0]


def test_an_agent_that_is_stopped_is_not_evicted(job: Jobs) -> None:
    made = three(job)
    agents = made.nodes("abc")
    run(agents)
    agents[1].signal(signal.SIGSTOP)
    lose(agents[2])
    made.reaches(lambda state: state.round == 1 and slots(state) == ["a", "b"])
    agents[1].signal(signal.SIGCONT)
    assert worlds(run(agents[:2])) == {(1, "restart 0 of 2 workers")}
    assert codes(end(agents[:2])) == [0, 0]


@only_in("tcpstore")
def test_an_agent_that_ends_in_order_says_goodbye(job: Jobs) -> None:
    made = three(job)
    agents = made.nodes("abc")
    run(agents)
    agents[1].signal(signal.SIGTERM)
    stay = [agents[0], agents[2]]
    assert worlds(run(stay)) == {(1, "restart 0 of 2 workers")}
    state = made.reaches(lambda state: state.complete and state.round == 1)
    assert state.ended and state.ended.why is Why.LEFT
    assert codes(end(stay)) == [0, 0]


@only_in("tcpstore")
def test_with_a_fixed_number_of_nodes_every_status_names_the_lost_node(job: Jobs, launch: Launcher) -> None:
    made = job("2", conf=SLOW)
    agents = made.nodes("ab")
    run(agents)
    agents[1].signal(signal.SIGKILL)
    agents[0].says("b lost · round 0 ends")
    made.reaches(lambda state: state.round == 1 and slots(state) == ["a"])
    assert "not yet seen: 1 · lost: b" in asked(made, launch=launch).stdout
    agents[0].says("not yet seen: 1 · lost: b")
    again = [agents[0], made.node("b")]
    assert worlds(run(again)) == {(1, "restart 0 of 2 workers")}
    assert "lost: " not in asked(made, launch=launch).stdout
    assert codes(end(again)) == [0, 0]


@pytest.mark.long
def test_ten_thousand_connections_that_are_idle_or_say_garbage_harm_nobody(tcpstore_job: Jobs) -> None:
    made = three(tcpstore_job)
    agents = made.nodes("abc")
    run(agents)
    state = made.reaches(lambda state: len(slots(state)) == 3)
    port = next(seat.profile.link_port for node, seat in state.seats.items() if node.slot == "b")
    memory, descriptors = size(agents[1].pid)
    with ExitStack() as stack:
        stack.enter_context(many_descriptors(CONNECTIONS + 1_000))
        for _ in range(CONNECTIONS // AT_ONCE):
            last = connected(stack, port)[-1]
            last.send(b"\x16\x03\x01" * 400)
            comes(last, select.POLLIN)  # b has hung up on it, so b has accepted the earlier ones
        assert not any(agent.has_ended() for agent in agents)
        later, more = size(agents[1].pid)
        assert later - memory < MEMORY_MAX and more - descriptors <= PENDING_MAX + 1
        lose(agents[2])
        assert worlds(run(agents[:2])) == {(1, "restart 0 of 2 workers")}
        lose(agents[1])
        made.reaches(lambda state: slots(state) == ["a"])


def connected(stack: ExitStack, port: int) -> list[socket.socket]:
    """Return connections to this port, made at once and all accepted by the kernel."""
    made = []
    for _ in range(AT_ONCE):
        each = stack.enter_context(socket.socket())
        each.setblocking(False)
        each.connect_ex(("127.0.0.1", port))
        made.append(each)
    for each in made:
        comes(each, select.POLLOUT)
    return made


def comes(connection: socket.socket, event: int) -> None:
    poll = select.poll()
    poll.register(connection, event)
    assert poll.poll(TIMEOUT_S * 1000), "waited in vain for the port"


def size(pid: int) -> tuple[int, int]:
    """Return the resident memory in kB and the number of descriptors."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return resident, len(list(Path(f"/proc/{pid}/fd").iterdir()))


@contextmanager
def many_descriptors(count: int) -> Iterator[None]:
    """Let this process open so many files. Skips where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        pytest.skip(f"{count} descriptors are more than this process may have: {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("nnodes", ["2"])
@only_in("tcpstore")
def test_a_job_of_fixed_size_takes_a_replacement_at_once(job: Jobs, nnodes: str) -> None:
    made = job(nnodes, conf=SLOW)
    agents = made.nodes("ab")
    told = run(agents)
    agents[1].signal(signal.SIGKILL)
    made.reaches(lambda state: state.round == 1 and slots(state) == ["a"])
    assert not alive(told[1:])
    again = [agents[0], made.node("c")]
    assert worlds(run(again)) == {(1, "restart 0 of 2 workers")}
    assert codes(end(again)) == [0, 0]
