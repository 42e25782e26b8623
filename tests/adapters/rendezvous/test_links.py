"""The links of agents over real sockets: hello, token, limits, and what their ends tell."""

from __future__ import annotations

import math
import os
import resource
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from attrs import define, evolve, field
from ports import a_row_of, listening
from processes import TIMEOUT_S
from worlds import edited, node, register

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous import link_hello
from elastic.adapters.rendezvous.link_hello import (
    BYTES_MAX,
    HELLO_S,
    OBSERVER,
    WATCHED,
    Hello,
    heard,
    proof,
    proves,
    spoken,
)
from elastic.adapters.rendezvous.link_server import PENDING_MAX, LinkAddress, LinkServer
from elastic.adapters.rendezvous.links import Links, _Stop
from elastic.adapters.rendezvous.reserved_ports import Reservation
from elastic.adapters.store.secret import Secret
from elastic.core.rendezvous import Arrive, Linked, RendezvousState
from elastic.core.rendezvous.links import AGAIN_S, Says
from elastic.core.world import Endpoint, Node, Profile

TOKEN = Secret(b"0123456789abcdef")
SUSPECT, GONE, ANSWERS, REFUSES = Says


@define(eq=False)
class Agent:
    """The links of one node, and what they have told."""

    links: Links
    told: SimpleQueue[Linked] = field(factory=SimpleQueue)

    def hears(self) -> Says:
        return self.told.get(timeout=TIMEOUT_S).says

    def has_heard(self) -> list[Says]:
        return [linked.says for linked in self.has_been_told()]

    def has_been_told(self) -> list[Linked]:
        found = []
        while True:
            try:
                found.append(self.told.get_nowait())
            except Empty:
                return found


Make = Callable[..., Agent]


@pytest.fixture
def agent() -> Iterator[Make]:
    made: list[Agent] = []

    def make(name: str, run: str = "run", token: Secret | None = None, interval_s: float = 0.05) -> Agent:
        told: SimpleQueue[Linked] = SimpleQueue()
        ttl_s = 100 * interval_s
        links = Links(node(name), run, LinkAddress("127.0.0.1"), interval_s, ttl_s, SystemClock(), told.put, token)
        made.append(Agent(links, told))
        links.start()
        return made[-1]

    yield make
    for each in made:
        each.links.stop()
        each.links.stop()
    assert "elastic-links" not in [thread.name for thread in threading.enumerate()]


def state(*seats: tuple[str, int]) -> RendezvousState:
    """Return a register in which these nodes have these ports of links."""
    made = register(f"1:{len(seats)}")
    for name, port in seats:
        made = edited(made, name, Arrive(Profile(Endpoint("127.0.0.1", 1), link_port=port)))
    return made


def watches(observer: Agent, name: str, port: int) -> None:
    observer.links.follow(state((observer.links.node.slot, 9), (name, port)), is_silent=False)


def until(claim: Callable[[], bool]) -> None:
    """Wait for what no thread announces."""
    done = threading.Event()
    for _ in range(int(TIMEOUT_S * 100)):
        if claim():
            return
        done.wait(0.01)
    raise AssertionError("waited in vain")


def is_up(observer: Agent, name: str) -> Callable[[], bool]:
    return lambda: any(each.link.up for who, each in [*observer.links._watched.items()] if who.slot == name)


@pytest.mark.parametrize("token", [None, TOKEN], ids=["without a token", "with a token"])
def test_two_agents_say_hello_and_one_is_gone_when_its_port_is_closed(agent: Make, token: Secret | None) -> None:
    a, b = agent("a", token=token), agent("b", token=token)
    watches(a, "b", b.links.server.port)
    until(is_up(a, "b"))
    until(lambda: [*b.links.server.observers] == ["a"] and not b.links.server.pending)
    dies(b)
    assert [a.hears(), a.hears()] == [SUSPECT, GONE]


def dies(one: Agent) -> None:
    """End the thread, so that nobody is greeted any longer, and close everything without a goodbye, as the kernel does."""
    links = one.links
    links._inbox.put(_Stop())
    os.eventfd_write(links._wake, 1)
    links._thread.join()
    links.server.listener.shutdown(socket.SHUT_RDWR)
    for watching in [*links.server.pending, *links.server.observers.values()]:
        watching.socket.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("interval_s", [1e4, 1e7, 1e307])
def test_two_agents_say_hello_however_long_a_node_may_be_silent(agent: Make, interval_s: float) -> None:
    a, b = agent("a", interval_s=interval_s), agent("b", interval_s=interval_s)
    watches(a, "b", b.links.server.port)
    until(is_up(a, "b"))
    until(lambda: [*b.links.server.observers] == ["a"])


def test_a_goodbye_tells_nothing(agent: Make) -> None:
    a, b = agent("a"), agent("b")
    watches(a, "b", b.links.server.port)
    until(is_up(a, "b"))
    b.links.stop()
    until(lambda: all(each.link.over for each in a.links._watched.values()))
    assert a.has_heard() == []


def test_a_link_that_the_network_breaks_is_made_again(agent: Make) -> None:
    a, b = agent("a"), agent("b")
    watches(a, "b", b.links.server.port)
    until(lambda: [*b.links.server.observers] == ["a"])
    b.links.server.observers["a"].socket.shutdown(socket.SHUT_RDWR)
    assert [a.hears(), a.hears()] == [SUSPECT, ANSWERS]


class Hand(SystemClock):
    """A clock that a test sets."""

    at = 1_000.0

    def now(self) -> float:
        return self.at


@define(eq=False)
class Driven:
    """The links of node a, served by the test and not by their thread. A socket of the test's own is node b."""

    clock: Hand = field(factory=Hand)
    told: list[Says] = field(factory=list)
    links: Links = field(init=False)
    held: ExitStack = field(factory=ExitStack)
    port: socket.socket = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.port = self.held.enter_context(listening())
        self.port.settimeout(TIMEOUT_S)
        self.links = Links(node("a"), "run", LinkAddress("127.0.0.1"), 1.0, 5.0, self.clock, self.hears)
        self.links.follow(state(("a", 9), ("b", self.port.getsockname()[1])), is_silent=False)
        self.links._wakes()
        assert not self.links._is_told_to_stop()

    def hears(self, linked: Linked) -> None:
        self.told.append(linked.says)

    @property
    def b(self) -> Any:
        return self.links._watched[node("b")]

    def passes(self) -> None:
        self.links._passes(self.clock.at)

    def connects(self) -> socket.socket:
        """Return b's end of the connection that a makes now."""
        self.passes()
        calls(self.links._selector, 1)
        return self.port.accept()[0]

    def is_suspected(self) -> None:
        """Let b say hello, and then end the link."""
        with self.connects() as made:
            made.sendall(spoken(Hello("run", node("b"))))
            calls(self.links._selector, 1)
            assert self.links.stand == {node("b"): True}
        calls(self.links._selector, 1)
        assert self.told == [SUSPECT]

    def is_refused(self, times: int) -> None:
        """Serve until b's port has refused so often."""
        self.passes()
        while self.b.link.refusals < times and not self.b.link.over:
            calls(self.links._selector, 1)

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.held.close()
        self.links.stop()


def test_a_port_that_has_refused_once_is_tried_again_after_a_pause() -> None:
    with Driven() as driven:
        driven.is_suspected()
        driven.port.close()
        driven.is_refused(1)
        assert (driven.b.connect_at, driven.told) == (driven.clock.at + AGAIN_S, [SUSPECT])
        driven.clock.at += AGAIN_S
        driven.is_refused(2)
        assert driven.told == [SUSPECT, GONE]


def test_a_suspect_that_accepts_and_says_nothing_is_waited_for_however_long_it_takes() -> None:
    """It is dying, or stopped: the end of this connection tells more than another one could."""
    with Driven() as driven:
        driven.is_suspected()
        with driven.connects():
            driven.clock.at += 100 * HELLO_S
            driven.passes()
            assert driven.b.socket is not None and not driven.b.link.tries
            driven.port.close()
        calls(driven.links._selector, 1)
        driven.is_refused(1)
        driven.clock.at += AGAIN_S
        driven.is_refused(2)
        assert driven.told == [SUSPECT, GONE]


def test_a_node_of_which_one_address_leads_nowhere_is_reached_by_the_next() -> None:
    with Driven() as driven, listening() as closed:
        family, nowhere = socket.AF_INET, closed.getsockname()
        closed.close()
        driven.b.addresses.insert(0, (family, nowhere))
        driven.passes()
        while not driven.b.link.tries:
            calls(driven.links._selector, 1)
        driven.clock.at = driven.b.connect_at
        with driven.connects() as made:
            made.sendall(spoken(Hello("run", node("b"))))
            calls(driven.links._selector, 1)
            assert driven.links.stand == {node("b"): True}


def test_a_node_that_has_said_hello_is_not_late_with_it_afterwards() -> None:
    with Driven() as driven, driven.connects() as made:
        made.sendall(spoken(Hello("run", node("b"))))
        calls(driven.links._selector, 1)
        driven.clock.at += 2 * HELLO_S
        driven.passes()
        assert (driven.links.stand, driven.b.link.tries, driven.b.connect_at) == ({node("b"): True}, 0, math.inf)


def test_in_a_silence_a_link_moves_on_from_a_port_that_refuses_though_it_never_stood() -> None:
    with Driven() as driven:
        seats = ("a", 9), ("b", driven.port.getsockname()[1]), *((name, 7) for name in "cde")
        driven.links.follow(state(*seats), is_silent=True)
        driven.links._wakes()
        assert not driven.links._is_told_to_stop()
        for each in "cd":
            driven.links._watched[node(each)].connect_at = math.inf
        driven.port.close()
        driven.is_refused(1)
        driven.clock.at += AGAIN_S
        driven.is_refused(2)
        assert node("e") not in driven.links.stand
        driven.passes()
        assert node("e") in driven.links.stand


def test_half_a_hello_is_forgotten_with_its_connection(agent: Make) -> None:
    a, hello = agent("a"), spoken(Hello("run", node("b")))
    with socket.create_server(("127.0.0.1", 0)) as port:
        port.settimeout(TIMEOUT_S)
        watches(a, "b", port.getsockname()[1])
        first, _ = port.accept()
        first.sendall(hello[:10])
        until(lambda: any(each.heard for each in a.links._watched.values()))
        first.close()
        again, _ = port.accept()
        with again:
            again.sendall(hello)
            until(is_up(a, "b"))
            assert a.has_heard() == []


def test_who_is_no_neighbour_any_longer_is_watched_no_longer(agent: Make) -> None:
    a, b, c = agent("a"), agent("b"), agent("c")
    watches(a, "b", b.links.server.port)
    until(lambda: [*b.links.server.observers] == ["a"])
    watches(a, "c", c.links.server.port)
    until(lambda: [*c.links.server.observers] == ["a"] and not b.links.server.observers)
    assert a.has_heard() == []


def test_another_incarnation_at_the_port_is_evidence(agent: Make) -> None:
    a, b = agent("a"), agent("b")
    watches(a, "b", b.links.server.port)
    until(lambda: [*b.links.server.observers] == ["a"])
    b.links.server.node = Node("b", 2)
    b.links.server.observers["a"].socket.shutdown(socket.SHUT_RDWR)
    assert [a.hears(), a.hears()] == [SUSPECT, GONE]


@pytest.mark.parametrize(
    "other",
    [{"run": "other"}, {"token": Secret(b"another token 123")}, {"token": None}],
    ids=["another run", "another token", "no token"],
)
def test_who_does_not_belong_to_the_job_is_not_linked(agent: Make, other: dict[str, object]) -> None:
    a, b = agent("a", token=TOKEN), agent("b", **{"token": TOKEN, **other})
    watches(a, "b", b.links.server.port)
    watches(b, "a", a.links.server.port)
    until(lambda: all(each.link.tries > 1 for one in (a, b) for each in one.links._watched.values()))
    assert not (is_up(a, "b")() or is_up(b, "a")() or a.links.server.observers)
    assert (a.has_heard(), b.has_heard()) == ([], [])


def test_another_node_of_the_job_at_the_port_is_not_taken_for_the_one_that_is_watched(agent: Make) -> None:
    a, c = agent("a", token=TOKEN), agent("c", token=TOKEN)
    watches(a, "b", c.links.server.port)
    until(lambda: any(each.link.tries > 1 for each in a.links._watched.values()))
    assert not is_up(a, "b")()
    assert a.has_heard() == []


def connected(one: Agent) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", one.links.server.port), timeout=TIMEOUT_S)
    made.settimeout(TIMEOUT_S)
    return made


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * (BYTES_MAX + 1),
        b"[" * 900 + b"\n",
        b'["elastic link 2", "run", "z", 1, "", ""]\n',
        b'["elastic link 1", "run", "z", "1", "", ""]\n',
        b'["elastic link 1", "run", "z", 1, 0, ""]\n',
        spoken(Hello("other", Node("z", 1))),
        b"\xff\n",
        b"\n",
    ],
    ids=lambda said: said[:40].decode("latin1").strip(),
)
def test_garbage_is_hung_up_on(agent: Make, said: bytes) -> None:
    a = agent("a")
    with connected(a) as made:
        made.sendall(said)
        assert ended(made)


def ended(made: socket.socket) -> bool:
    try:
        return made.recv(4096) == b""
    except ConnectionError:
        return True


def test_who_says_nothing_is_hung_up_on_after_its_time(agent: Make) -> None:
    with connected(agent("a")) as made:
        assert ended(made)


def test_among_many_who_say_nothing_the_oldest_goes_first_and_an_agent_gets_through(agent: Make) -> None:
    a, b = agent("a"), agent("b")
    idle = [connected(b) for _ in range(4 * PENDING_MAX)]
    try:
        watches(a, "b", b.links.server.port)
        until(is_up(a, "b"))
        assert len(b.links.server.pending) <= PENDING_MAX
        assert ended(idle[0])
    finally:
        for each in idle:
            each.close()


def test_a_connection_that_makes_room_in_the_moment_in_which_it_speaks_is_closed_and_the_port_goes_on() -> None:
    with selectors.DefaultSelector() as selector:
        server = LinkServer(node("a"), "run", LinkAddress("127.0.0.1"), 5.0, SystemClock(), selector)
        clients = []
        try:
            while len(server.pending) < PENDING_MAX:
                clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S))
                calls(selector, 1)
            clients[0].sendall(b"\n")
            clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S))
            calls(selector, 2)
            assert ended(clients[0])
            assert len(server.pending) == PENDING_MAX
            clients[1].sendall(b"\n")
            calls(selector, 1)
            assert ended(clients[1])
        finally:
            for each in clients:
                each.close()
            server.close()


def calls(selector: selectors.BaseSelector, count: int) -> None:
    """Wait until so many sockets are ready at once, and serve them, the listener first."""
    while len(ready := selector.select(TIMEOUT_S)) < count:
        pass
    for key, _ in sorted(ready, key=lambda each: each[0].fd):
        key.data()


def test_a_second_link_of_one_observer_replaces_the_first(agent: Make) -> None:
    a = agent("a")
    with connected(a) as first, connected(a) as second:
        for made in (first, second):
            made.sendall(spoken(Hello("run", Node("z", 1))))
            assert heard(made.recv(BYTES_MAX)) == Hello("run", Node("a", 1))
        assert ended(first)
        until(lambda: [*a.links.server.observers] == ["z"])


def test_a_proof_holds_for_its_side_its_speaker_its_run_and_its_challenge_only() -> None:
    mine = Hello("run", Node("a", 1))
    signed = evolve(mine, proof=proof(TOKEN, OBSERVER, mine, "one"))
    assert proves(TOKEN, OBSERVER, signed, "one")
    assert not proves(TOKEN, WATCHED, signed, "one")
    assert not proves(TOKEN, OBSERVER, signed, "two")
    assert not proves(TOKEN, OBSERVER, evolve(signed, run="other"), "one")
    assert not proves(TOKEN, OBSERVER, evolve(signed, node=Node("a", 2)), "one")
    assert not proves(TOKEN, OBSERVER, evolve(signed, proof="ä"), "one")
    assert not proves(TOKEN, OBSERVER, evolve(signed, proof="\ud800"), "one")
    assert proves(None, OBSERVER, mine, "")
    assert link_hello.challenge(TOKEN) != link_hello.challenge(TOKEN)


def test_no_program_inherits_a_descriptor_of_the_links(agent: Make) -> None:
    links = agent("a").links
    assert not links.server.listener.get_inheritable()
    assert links.server.port > 0


def test_an_address_that_is_not_this_hosts_is_listened_for_on_every_one() -> None:
    links = Links(node("a"), "run", LinkAddress("192.0.2.1"), 1.0, 5.0, SystemClock(), print)
    assert links.server.listener.getsockname()[0] == "0.0.0.0"
    links.stop()


@pytest.fixture
def serves() -> Iterator[Callable[..., LinkServer]]:
    """Servers of links at the loopback's second address: connections there stand for those of other hosts."""
    with ExitStack() as stack:

        def make(*ports: int) -> LinkServer:
            selector = stack.enter_context(selectors.DefaultSelector())
            made = LinkServer(node("a"), "run", LinkAddress("127.0.0.2", ports), 5.0, SystemClock(), selector)
            stack.callback(made.close)
            return made

        yield make


def closed_first() -> int:
    """Return a port of which the kernel remembers a connection that its owner has closed."""
    with (
        socket.create_server(("127.0.0.2", *a_row_of(1))) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        made, _ = server.accept()
        made.close()
        assert client.recv(1) == b""
        return int(server.getsockname()[1])


def test_a_port_is_had_though_the_kernel_remembers_connections_there(serves: Callable[..., LinkServer]) -> None:
    port = closed_first()
    assert serves(port).port == port


def test_a_port_that_somebody_has_is_not_shared(serves: Callable[..., LinkServer]) -> None:
    port = closed_first()
    with Reservation("localhost", (port,)), pytest.raises(OSError, match="none is free"):
        serves(port)
    assert serves(port).port == port
    with pytest.raises(OSError, match=f"of the ports {port}, none is free"):
        serves(port)
    with pytest.raises(OSError, match="none is free"):
        Reservation("localhost", (port,))


@pytest.mark.parametrize("ports", [(7,), (0,), (29401, 0)])
def test_a_host_without_a_descriptor_says_so_and_blames_no_port(ports: tuple[int, ...]) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        with pytest.raises(OSError, match="Too many open files"):
            LinkServer(node("a"), "run", LinkAddress("127.0.0.1", ports), 5.0, SystemClock(), selector)


def test_an_address_that_nobody_knows_is_tried_again(agent: Make) -> None:
    a = agent("a")
    seats = state(("a", 9), ("b", 7))
    nowhere = Profile(Endpoint("no.such.host.invalid", 1), link_port=7)
    b = evolve(seats.seats[node("b")], profile=nowhere)
    a.links.follow(evolve(seats, seats={**seats.seats, node("b"): b}), is_silent=False)
    until(lambda: any(each.link.tries > 1 for each in a.links._watched.values()))
    assert a.has_heard() == []


def test_a_port_that_was_never_open_tells_of_a_death_only_while_the_store_is_silent(agent: Make) -> None:
    a, b = agent("a"), agent("b")
    seats = state(("a", 9), ("b", b.links.server.port))
    b.links.stop()
    a.links.follow(seats, is_silent=False)
    until(lambda: any(each.link.tries > 1 for each in a.links._watched.values()))
    assert a.has_heard() == []
    a.links.follow(seats, is_silent=True)
    assert a.hears() is REFUSES


def test_links_move_on_from_the_dead_while_the_store_is_silent(agent: Make) -> None:
    a, *others = (agent(name) for name in "abcdef")
    seats = state(("a", 9), *((each.links.node.slot, each.links.server.port) for each in others))
    a.links.follow(seats, is_silent=False)
    until(lambda: sum(a.links.stand.values()) == 3)
    a.links.follow(seats, is_silent=True)
    for each in others[:4]:
        dies(each)
    until(lambda: [each.slot for each, stands in a.links.stand.items() if stands] == ["f"])
    others[4].links.stop()
    until(lambda: all(each.link.is_gone for each in a.links._watched.values()))
    assert {told.node.slot for told in a.has_been_told() if told.says in (GONE, REFUSES)} == set("bcdef")
