"""docs/etcd.md says what to type: each line of it, typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError

import pytest
from conformance import born, fault, grown
from etcd_clients import clients
from etcds import Cluster, single
from worlds import node

from elastic.adapters.store.etcd.access import Access
from elastic.adapters.store.notes import FAULTS

MANUAL = (Path(__file__).parents[4] / "docs" / "etcd.md").read_text()
ANN = Access(user="ann", password="PASSWORD")


def block(heading: str) -> list[list[str]]:
    """The commands of the first block below a heading, as words without the `etcdctl`."""
    found = re.search(rf"{re.escape(heading)}.*?```sh\n(.*?)```", MANUAL, re.DOTALL)
    assert found
    lines = found[1].replace("\\\n", " ").splitlines()
    assert all(line.startswith("etcdctl ") for line in lines)
    return [shlex.split(line)[1:] for line in lines]


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Cluster]:
    with single(tmp_path / "etcd") as etcd:
        yield etcd


def test_the_role_of_the_manual_is_enough_and_no_more_than_that(etcd: Cluster) -> None:
    etcd.etcdctl("put", "others", "secret")
    etcd.etcdctl("user", "add", "root:root")
    etcd.etcdctl("user", "grant-role", "root", "root")
    for words in block("What the job's user must be allowed"):
        etcd.etcdctl(*words)
    with clients(etcd, access=ANN) as client:
        one = client()
        one.probe()
        one.set(born(), None)
        one.set(grown(born(), "b"), born().token)
        one.heartbeat(node("a"), 1)
        one.notes.add(FAULTS, fault("a"))
        assert one.heartbeats([node("a"), node("b")]).counters == {node("a"): 1, node("b"): None}
        assert one.notes.faults() == (fault("a"),)
        one.remove_heartbeat(node("a"))
    etcd.user = "ann:PASSWORD"
    for line in ("get others", "put others x", "del others", "get a --prefix", "user list"):
        with pytest.raises(CalledProcessError):
            etcd.etcdctl(*line.split())


def test_a_snapshot_is_saved_and_restored_as_the_manual_says(etcd: Cluster, tmp_path: Path) -> None:
    with clients(etcd) as client:
        client().set(born(), None)
    given = {"snapshot.db": str(tmp_path / "snapshot.db"), "DATA": str(tmp_path / "data")}
    for words in block("Restoring a snapshot"):
        etcd.etcdctl(*(given.get(word, word.replace("HOST", "127.0.0.1")) for word in words))
    assert (tmp_path / "data" / "member").is_dir()


def test_what_is_left_of_a_run_is_removed_as_the_manual_says(etcd: Cluster) -> None:
    found = re.search(r"`etcdctl (del elastic/job7/ --prefix)`", MANUAL)
    assert found
    with clients(etcd, "job7") as client:
        client().set(born(), None)
        client().notes.add(FAULTS, fault("a"))
        etcd.etcdctl(*found[1].split())
        assert client().get().state is None and client().notes.faults() == ()
