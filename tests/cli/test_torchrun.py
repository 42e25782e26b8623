"""torch's parameters as options, and a mistake in them as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import entry_points
from typing import Any

import pytest
from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters

from elastic.cli.torchrun import _options, create, handler
from elastic.core.world import COUNT_MAX


def parameters(endpoint: str = "", nodes: tuple[int, int] = (1, 1), **conf: Any) -> RendezvousParameters:
    """Return parameters as torchrun makes them: it always adds a number to the configuration."""
    return RendezvousParameters("elastic", endpoint, "job", *nodes, None, timeout=900, **conf)


@contextmanager
def made(given: RendezvousParameters) -> Iterator[RendezvousHandler]:
    with ExitStack() as stack:
        handler = create(given)
        stack.callback(handler.shutdown)
        yield handler


def test_torch_finds_the_handler_by_its_entry_point() -> None:
    (found,) = [each for each in entry_points(group="torchrun.handlers") if each.name == "elastic"]
    assert found.load() is handler
    assert handler() is create


@pytest.mark.parametrize("given", [parameters(), parameters(store="memory")], ids=["nothing", "memory"])
def test_a_node_alone_needs_no_endpoint(given: RendezvousParameters) -> None:
    with made(given) as alone:
        info = alone.next_rendezvous()
        assert (info.rank, info.world_size) == (0, 1)
        assert (alone.get_backend(), alone.get_run_id()) == ("elastic", "job")


def test_the_spans_of_the_configuration_count_and_an_unknown_key_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with made(parameters(join_timeout=" 7 ", keep_alive_interval="2", read_timeout="60", colour="red")) as alone:
        settings = alone._settings  # type: ignore[attr-defined]
        assert (settings.join_timeout, settings.ttl) == (7.0, 10.0)
        assert settings.limits.max_restarts == COUNT_MAX - 1  # by which agents of elastic launch are refused
    of_read_timeout, of_colour = capsys.readouterr().err.splitlines()
    assert of_read_timeout.startswith("elastic: --rdzv-conf: read_timeout makes no difference: ")
    assert of_colour.startswith("elastic: --rdzv-conf: 'colour' is not a key")


def test_the_node_listens_at_the_ports_that_are_named() -> None:
    with made(parameters(ports="20000-20999")) as alone:
        assert alone._reserved.endpoint.port in range(20_000, 21_000)  # type: ignore[attr-defined]


def test_an_etcd_url_is_enough_to_choose_the_etcd() -> None:
    given = RendezvousParameters("elastic", "etcd://h1,h2", "job", 1, 1)
    assert _options(given).rdzv_backend == "etcd"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (parameters(store="zookeeper"), "elastic: --rdzv-conf: store=zookeeper: write c10d, etcd or memory"),
        (parameters(nodes=(2, 2)), "elastic: --nnodes=2: several nodes must know where they meet"),
        (parameters("a:b:c"), "elastic: --rdzv-endpoint=a:b:c: write HOST or HOST:PORT"),
        (parameters(store="etcd"), "elastic: --rdzv-backend=etcd: name its members"),
        (parameters(nodes=(2, 2), store="memory"), "elastic: --rdzv-conf: store=memory: is for one node, not 2"),
        (parameters(join_timeout="soon"), "elastic: --rdzv-conf: join_timeout=soon: write a number of seconds"),
    ],
    ids=["store", "nowhere", "endpoint", "etcd nowhere", "memory of two", "span"],
)
def test_a_mistake_is_a_value_error_in_the_words_of_elastic_launch(given: RendezvousParameters, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        create(given)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)
