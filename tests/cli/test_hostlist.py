"""Slurm's lists of hosts are read as ClusterShell reads them, and nothing else is read for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.cli.hostlist import TEXT_MAX, hosts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu-01", "gpu-01"),
        ("login,n[1-3]", "login n1 n2 n3"),
        ("gpu[08-11,3].site", "gpu08.site gpu09.site gpu10.site gpu11.site gpu3.site"),
        ("r[1-2]n[1,3]", "r1n1 r1n3 r2n1 r2n3"),
        ("n[9-9],n[0-1]", "n9 n0 n1"),
        ("[1-2]", "1 2"),
    ],
)
def test_a_list_names_its_hosts_in_its_order(text: str, names: str) -> None:
    assert hosts(text) == tuple(names.split())


@pytest.mark.parametrize(
    "text",
    ["", ",", "n1,", "n[1-3", "n1-3]", "n[]", "n[3-1]", "n[1-2-3]", "n[a]", "n[1,]", "n 1", "n[1 -2]", "n\n", "n[[1]]", "ü1",
     "n[1-9999999999]", "$(reboot)", "n[²]", f"{'a' * 99}!", "n[0-9]" * 9],
)  # fmt: skip
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no (host|range)"):
        hosts(text)


def test_a_list_is_bounded() -> None:
    assert len(hosts("n[1-4096]")) == 4_096
    for text in ("n[1-4097]", "n[1-999999999]", "n[0-99999][0-99999][0-99999]", ",".join(["n[1-4000]"] * 2)):
        with pytest.raises(ValueError, match="at most 4096 hosts"):
            hosts(text)
    with pytest.raises(ValueError, match="characters"):
        hosts("n," * TEXT_MAX)


NUMBERS = st.one_of(st.integers(0, 120).map(str), st.integers(0, 99).map("{:03}".format))
NAMES = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["n", "gpu-", "a.b"]), NUMBERS),
    st.builds("r{}n{}{}".format, st.integers(0, 4), st.integers(0, 12), st.sampled_from(["", "x"])),
    st.sampled_from(["login", "head-node"]),
)


@given(st.lists(NAMES, min_size=1, max_size=40, unique=True))
def test_what_clustershell_folds_is_read_as_it_was(names: list[str]) -> None:
    nodes = pytest.importorskip("ClusterShell.NodeSet")
    assert sorted(hosts(str(nodes.NodeSet.fromlist(names)))) == sorted(names)


RANGES = st.one_of(NUMBERS, st.builds("{0}-{1}".format, st.integers(0, 9), st.integers(10, 30)), st.just("08-12"))
LISTS = st.lists(
    st.builds("n{}[{}]{}".format, st.sampled_from(["", "a"]), st.lists(RANGES, min_size=1, max_size=3).map(",".join),
              st.sampled_from(["", "x", "y[1-3]"])), min_size=1, max_size=4).map(",".join)  # fmt: skip


@given(LISTS)
def test_a_list_has_the_hosts_that_clustershell_finds_in_it(text: str) -> None:
    nodes = pytest.importorskip("ClusterShell.NodeSet")
    assert set(hosts(text)) == set(nodes.NodeSet(text))
