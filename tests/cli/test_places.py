"""The place where nodes meet, as the options say it: the endpoint, the host that serves it, the rendezvous' settings."""

from __future__ import annotations

import socket
from collections.abc import Callable

import commandlines
import pytest
from commandlines import limits

from elastic.adapters.clock import SystemClock
from elastic.adapters.launch_settings import LaunchSettings
from elastic.adapters.store.connection import MemoryConnection, TCPStoreConnection
from elastic.adapters.store.tcpstore.wire import Address
from elastic.cli import places, values
from elastic.cli.places import Place
from elastic.core.rendezvous import Settings

ELSEWHERE = "192.0.2.1"
"""An address for documentation: no host has it."""
Parse = Callable[..., LaunchSettings]


def place(*arguments: str) -> Place:
    made = places.place(commandlines.options(*arguments), {})
    assert isinstance(made, Place)
    return made


ENDPOINTS: list[tuple[str, tuple[str, int | None] | None]] = [
    ("gpu-01", ("gpu-01", None)),
    ("gpu-01:29500", ("gpu-01", 29500)),
    (" gpu_01.example.com:0 ", ("gpu_01.example.com", 0)),
    ("10.0.0.7:65535", ("10.0.0.7", 65535)),
    ("[::1]", ("::1", None)),
    ("[fe80::1]:29500", ("fe80::1", 29500)),
    ("[::ffff:10.0.0.7]:1", ("::ffff:10.0.0.7", 1)),
    ("", None),
    ("  ", None),
]


@pytest.mark.parametrize(("text", "read"), ENDPOINTS)
def test_an_endpoint_is_a_host_and_a_port_or_nothing(text: str, read: tuple[str, int | None] | None) -> None:
    assert values.endpoint(text) == read


@pytest.mark.parametrize(
    "text", [":29400", "a:", "a:b", "a:1:2", "::1", "a:65536", "a:123456", "a/b", "a b", "[gpu]:1"]
)
def test_a_text_that_is_no_endpoint_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ValueError, match=r"^write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets$"):
        values.endpoint(text)


def test_one_node_without_an_endpoint_needs_no_store() -> None:
    for arguments in ((), ("--rdzv-backend=static",), ("--rdzv-endpoint=",), ("--nnodes=1:1",)):
        assert place(*arguments) == Place(None, None)


STATIC = [
    ("--master-addr=gpu-01", Address("gpu-01", 29_500), None),
    ("--master-addr=gpu-01 --master-port=7 --node-rank=0", Address("gpu-01", 7), True),
    ("--master-addr=gpu-01 --node-rank=1", Address("gpu-01", 29_500), False),
    ("--master-addr=gpu-01 --node-rank=1 --rdzv-conf=is_host=true", Address("gpu-01", 29_500), True),
    ("--node-rank=1", Address("127.0.0.1", 29_500), False),
    ("--master-addr=[fe80::1]", Address("fe80::1", 29_500), None),
    ("--master-addr=fe80::1", Address("fe80::1", 29_500), None),
    ("--rdzv-backend=static", Address("127.0.0.1", 29_500), None),
    ("--rdzv-endpoint=a:7 --node-rank=0 --master-addr=b", Address("a", 7), True),
    ("--rdzv-endpoint=a --rdzv-backend=static", Address("a", 29_400), None),
    ("--rdzv-endpoint=a --node-rank=1", Address("a", 29_400), False),
    ("--rdzv-endpoint=a --node-rank=1 --master-port=7", Address("a", 7), False),
    ("--rdzv-endpoint=a", Address("a", 29_400), None),
    ("--rdzv-backend=c10d --rdzv-endpoint=a --node-rank=1", Address("a", 29_400), None),
]


@pytest.mark.parametrize(("arguments", "address", "is_host"), STATIC)
def test_a_static_job_meets_at_its_master_and_node_rank_0_serves_the_store(
    arguments: str, address: Address, is_host: bool | None
) -> None:
    made = place("--nnodes=2", *arguments.split())
    assert (made.endpoint, made.is_host) == (address, is_host)


def test_a_static_job_grows_and_shrinks_as_nnodes_says_and_has_a_slot_for_each_rank(settings: Parse) -> None:
    made = settings("--nnodes=1:3", "--node-rank=2", "--master-addr=a", "x")
    assert made.rendezvous.limits == limits(1, 3, 0)
    assert (made.slot, made.place, made.run_id, made.store) == ("2", (2,), "none", "a:29500")
    assert settings("--nnodes=2", "--node-rank=1", "--node-id=n7", "x").slot == "n7"


def test_a_node_rank_is_a_hint_for_c10d(settings: Parse) -> None:
    made = settings("--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost", "--node-rank=1", "x")
    assert (made.slot, made.place, made.rendezvous.limits) == (None, (1,), limits(1, 2, 0))


def test_one_static_node_needs_no_master() -> None:
    assert place("--master-addr=gpu-01", "--master-port=7", "--node-rank=0") == Place(None, None)


def test_standalone_overrides_every_option_of_the_rendezvous() -> None:
    alone = place("--standalone", "--rdzv-backend=etcd", "--rdzv-endpoint=a:1", "--rdzv-conf=is_host=1")
    assert alone == Place(None, None)
    assert (alone.name, alone.own_address()) == ("in memory", "localhost")


def test_the_endpoint_s_default_port_is_torch_s() -> None:
    assert place("--nnodes=2", "--rdzv-endpoint=gpu-01").endpoint == Address("gpu-01", 29_400)
    assert place("--nnodes=1:2", "--rdzv-endpoint=gpu-01:1").endpoint == Address("gpu-01", 1)
    assert place("--nnodes=2", "--rdzv-endpoint=[::1]").name == "[::1]:29400"


def test_one_node_may_have_an_endpoint_with_any_free_port() -> None:
    assert place("--rdzv-endpoint=localhost:0").endpoint == Address("localhost", 0)


SPELLINGS = {
    None: ("auto", "AUTO"),
    True: ("1", "true", "True", "t", "yes", "Y"),
    False: ("0", "false", "FALSE", "f", "no", "N"),
}


@pytest.mark.parametrize(("told", "text"), [(told, text) for told, texts in SPELLINGS.items() for text in texts])
def test_is_host_is_spelled_as_in_torch(told: bool | None, text: str) -> None:
    assert place("--rdzv-endpoint=a", f"--rdzv-conf=is_host={text}").is_host is told


def test_without_is_host_the_agent_finds_out_which_host_serves() -> None:
    assert place("--rdzv-endpoint=a").is_host is None


def test_the_run_id_of_several_nodes_is_none_by_default(settings: Parse) -> None:
    assert settings("--nnodes=2", "--rdzv-endpoint=a", "x").run_id == "none"
    assert settings("--nnodes=2", "--rdzv-endpoint=a", "--rdzv-id=job7", "x").run_id == "job7"
    assert settings("--standalone", "--rdzv-endpoint=a", "x").run_id != "none"


EMPTY = ("--rdzv-id=", "--local-addr=", "--role=", "--master-addr=")


def test_an_empty_value_is_as_good_as_none(settings: Parse) -> None:
    for nodes in ((), ("--nnodes=2", "--rdzv-endpoint=localhost"), ("--nnodes=2", "--node-rank=0")):
        given, left_out = settings(*nodes, *EMPTY, "x"), settings(*nodes, "x")
        assert (given.address, given.role, given.store) == (left_out.address, left_out.role, left_out.store)
        assert given.run_id == left_out.run_id or not nodes


def test_one_node_alone_may_have_any_master_port_and_node_rank() -> None:
    assert place("--master-port=0", "--node-rank=1") == Place(None, None)


def test_the_run_id_of_one_node_is_random_unless_an_endpoint_or_master_port_is_given(settings: Parse) -> None:
    assert settings("--master-port=29500", "x").run_id == "none"
    assert settings("--rdzv-backend=static", "--rdzv-endpoint=localhost:29500", "x").run_id == "none"
    assert len({settings(*words, "x").run_id for words in ((), (), ("--node-rank=0",), ("--master-addr=a",))}) == 4


def test_the_settings_name_the_store_and_how_this_node_is_reached(settings: Parse) -> None:
    made = settings("--nnodes=2:3", "--rdzv-endpoint=localhost:7", "--max-restarts=4", "x")
    assert (made.store, made.address) == ("localhost:7", "localhost")
    assert made.rendezvous.limits == limits(2, 3, 4)
    assert settings("--nnodes=2", "--rdzv-endpoint=localhost", "--local-addr=n7", "x").address == "n7"


def test_the_node_s_address_is_the_one_that_reaches_the_store() -> None:
    own = Place(Address(ELSEWHERE, 1), None).own_address()
    assert own not in ("localhost", ELSEWHERE) and not own.startswith("127.")


def test_an_endpoint_on_another_host_is_not_served_here() -> None:
    here = Place(None, None).open("job", SystemClock(), Settings())
    assert isinstance(here, MemoryConnection)
    here.close(0.0)
    there = Place(Address(ELSEWHERE, 1), None).open("job", SystemClock(), Settings())
    assert isinstance(there, TCPStoreConnection) and there.place == f"{ELSEWHERE}:1"
    there.close(0.0)


def test_a_first_node_that_is_to_serve_the_store_at_another_host_s_address_is_a_mistake(
    mistake: Callable[..., str],
) -> None:
    answer = mistake("--nnodes=2", "--node-rank=0", f"--rdzv-endpoint={ELSEWHERE}:1", "x")
    assert answer == (
        f"--rdzv-endpoint={ELSEWHERE}:1: this node was told to serve the store there (is_host), but cannot assign "
        "requested address; name an address or name of this host, or is_host=false where another serves it"
    )


def test_serving_the_store_at_a_taken_port_is_a_mistake(
    mistake: Callable[..., str],
) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        answer = mistake("--nnodes=2", f"--rdzv-endpoint=localhost:{port}", "--rdzv-conf=is_host=true", "x")
    assert answer == (
        f"--rdzv-endpoint=localhost:{port}: this node was told to serve the store there (is_host), but somebody "
        "listens there already; name another port, or is_host=false where another serves it"
    )
