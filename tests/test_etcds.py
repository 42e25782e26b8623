"""The etcd members that other tests meet in: what the tests do to them really happens."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import etcds
import pytest


@pytest.fixture
def one(nothing_left: str, tmp_path: Path) -> Iterator[etcds.Cluster]:
    with etcds.single(tmp_path) as made:
        yield made


@pytest.fixture
def three(nothing_left: str, tmp_path: Path) -> Iterator[etcds.Cluster]:
    with etcds.cluster(tmp_path) as made:
        yield made


def refused(cluster: etcds.Cluster, *arguments: str) -> str:
    """What etcdctl says against it."""
    with pytest.raises(subprocess.CalledProcessError) as failed:
        cluster.etcdctl(*arguments)
    return str(failed.value.stderr)


def value(cluster: etcds.Cluster, key: str, member: etcds.Member | None = None) -> str:
    return cluster.etcdctl("get", "--print-value-only", key, member=member).strip()


def test_a_single_member_keeps_what_it_is_given_through_its_death(one: etcds.Cluster) -> None:
    one.etcdctl("put", "key", "value")
    one.members[0].kill()
    assert not one.members[0].is_healthy()
    one.members[0].start()
    one.wait_until_healthy()
    assert value(one, "key") == "value"


def test_when_the_leader_is_killed_another_member_leads(three: etcds.Cluster) -> None:
    three.etcdctl("put", "key", "value")
    lost = three.leader()
    lost.kill()
    new = three.leader()
    assert new is not lost
    assert value(three, "key", new) == "value"
    lost.start()
    lost.wait_until_healthy()
    assert value(three, "key", lost) == "value"


def test_while_the_leader_is_paused_another_member_leads(three: etcds.Cluster) -> None:
    lost = three.leader()
    lost.pause()
    new = three.leader()
    assert new is not lost
    three.etcdctl("put", "key", "value", member=new)
    lost.resume()
    lost.wait_until_healthy()
    assert value(three, "key", lost) == "value"
    assert len(three.followers()) == 2


def test_a_member_alone_commits_nothing(three: etcds.Cluster) -> None:
    kept, *others = three.members
    for member in others:
        member.stop()
    assert refused(three, "--command-timeout=1s", "put", "key", "value")
    for member in others:
        member.start()
    three.wait_until_healthy()
    three.etcdctl("put", "key", "value")
    assert value(three, "key", kept) == "value"


def test_what_is_restored_is_the_snapshot_in_another_cluster_at_the_same_addresses(
    three: etcds.Cluster, tmp_path: Path
) -> None:
    three.etcdctl("put", "key", "before")
    three.snapshot(tmp_path / "snapshot")
    three.etcdctl("put", "key", "after")
    identity = cluster_id(three)
    restored = three.restored(tmp_path / "snapshot")
    assert restored.endpoints == three.endpoints
    assert {value(restored, "key", member) for member in restored.members} == {"before"}
    assert cluster_id(restored) != identity


def cluster_id(cluster: etcds.Cluster) -> str:
    fields = cluster.etcdctl("--write-out=fields", "get", "key")
    return next(line for line in fields.splitlines() if line.startswith('"ClusterID"'))


def test_a_member_whose_data_is_lost_is_replaced(three: etcds.Cluster) -> None:
    three.etcdctl("put", "key", "value")
    lost = three.followers()[0]
    new = three.replace(lost)
    assert value(three, "key", new) == "value"
    assert len(three.etcdctl("member", "list").splitlines()) == 3


def test_with_certificates_only_who_shows_one_of_the_authority_is_heard(nothing_left: str, tmp_path: Path) -> None:
    authority = etcds.Authority(tmp_path / "authority")
    stranger = etcds.Authority(tmp_path / "stranger")
    with etcds.single(tmp_path, authority) as made:
        made.etcdctl("put", "key", "value")
        assert value(made, "key") == "value"
        made.tls = None
        assert refused(made, "--command-timeout=1s", "get", "key")
        trusts = f"--cacert={authority.ca}"
        for shown in (stranger.client, authority.expired):
            shows = f"--cert={shown.certificate}", f"--key={shown.key}"
            assert refused(made, "--command-timeout=1s", trusts, *shows, "get", "key")
        shown = authority.client
        made.etcdctl(trusts, f"--cert={shown.certificate}", f"--key={shown.key}", "get", "key")


def test_members_and_their_data_are_gone_also_when_the_test_fails(nothing_left: str, tmp_path: Path) -> None:
    def fails() -> None:
        with etcds.single(tmp_path) as made:
            members.extend(made.members)
            raise ZeroDivisionError

    members: list[etcds.Member] = []
    with pytest.raises(ZeroDivisionError):
        fails()
    (member,) = members
    assert not member.is_up and not member.data.exists()
