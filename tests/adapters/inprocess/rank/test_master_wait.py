"""The wait for the store of rank 0: it ends when somebody listens, or when its span is over."""

from __future__ import annotations

import socket
import threading

import pytest

from elastic.adapters.inprocess.rank.master_wait import Waiting, await_listener


def test_the_wait_ends_when_somebody_listens() -> None:
    with socket.socket() as serving:
        serving.bind(("localhost", 0))
        port = serving.getsockname()[1]
        waits = threading.Thread(target=await_listener, args=("localhost", port, None))
        waits.start()
        assert waits.is_alive()
        serving.listen()
        waits.join()


def test_the_wait_ends_with_its_span() -> None:
    with socket.socket() as reserved:
        reserved.bind(("localhost", 0))
        await_listener("localhost", reserved.getsockname()[1], 0.01)


@pytest.mark.parametrize(("rank", "comes"), [("1", True), ("0", False)])
def test_all_ranks_but_the_one_that_serves_wait(monkeypatch: pytest.MonkeyPatch, rank: str, comes: bool) -> None:
    """What torch's handler is given, and what it yields, is passed on."""
    with socket.create_server(("localhost", 0)) as serving:
        host, port = serving.getsockname()
        for name, text in {"RANK": rank, "MASTER_ADDR": host, "MASTER_PORT": str(port)}.items():
            monkeypatch.setenv(name, text)
        assert list(Waiting(lambda url, **given: iter([url, given]))("env://", use="x")) == ["env://", {"use": "x"}]
        serving.setblocking(False)
        if comes:
            serving.accept()[0].close()
        else:
            with pytest.raises(BlockingIOError):
                serving.accept()
