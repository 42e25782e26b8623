"""The command of the first line: it names the store as `elastic status` takes it, and no secret."""

from __future__ import annotations

import shlex

import pytest

from elastic.cli.how_to_ask import how_to_ask
from elastic.cli.launch import launch
from elastic.cli.launch_options import LaunchOptions
from elastic.cli.option import given_to
from elastic.cli.running_job import JobOptions
from elastic.cli.status import status


def options(*given: str) -> LaunchOptions:
    params = launch.make_context("launch", [*given, "x"]).params
    return LaunchOptions(**{name: each for name, each in params.items() if name not in ("script", "arguments")})


ETCD = "--rdzv-conf=cacert=/etc/ca.crt,user=ann,password_file=/pw,join_timeout=5"


@pytest.mark.parametrize(
    ("given", "store", "told"),
    [
        ((), "in memory", "--rdzv-id=7"),
        (("--rdzv-endpoint=localhost:0",), "localhost:40123", "--rdzv-endpoint=localhost:40123 --rdzv-id=7"),
        (
            ("--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=token_file=/my token,is_host=true"),
            "n1:29400",
            "--rdzv-endpoint=n1:29400 --rdzv-id=7 '--rdzv-conf=token_file=/my token'",
        ),
        (
            ("--rdzv-endpoint=etcd://h1,h2", ETCD),
            "h1:2379,h2:2379",
            f"--rdzv-endpoint=etcd://h1:2379,etcd://h2:2379 --rdzv-id=7 {ETCD.removesuffix(',join_timeout=5')}",
        ),
        (
            ("--rdzv-backend=etcd", "--rdzv-endpoint=https://h1"),
            "h1:2379",
            "--rdzv-backend=etcd --rdzv-endpoint=https://h1:2379 --rdzv-id=7",
        ),
        (
            ("--rdzv-backend=etcd", "--rdzv-endpoint=h1,h2:1"),
            "h1:2379,h2:1",
            "--rdzv-backend=etcd --rdzv-endpoint=h1:2379,h2:1 --rdzv-id=7",
        ),
    ],
)
def test_the_command_names_the_job_s_store_as_status_reads_it(given: tuple[str, ...], store: str, told: str) -> None:
    line = how_to_ask(options(*given), "7", store, "/tmp/elastic-relay-x/boot")
    assert line == f"elastic status {told}"
    read = given_to(JobOptions, status.make_context("status", shlex.split(line)[2:]).params)
    assert read.rdzv_id == "7"


def test_without_a_socket_a_job_in_memory_can_be_asked_by_nobody() -> None:
    assert how_to_ask(options(), "7", "in memory", "") == ""
    assert how_to_ask(options("--rdzv-endpoint=localhost:0"), "7", "localhost:1", "") != ""


def test_the_command_names_the_directory_where_it_finds_an_agent_that_no_store_tells_of() -> None:
    socket = "/scratch/my jobs/elastic-relay-x/boot"
    assert how_to_ask(options(), "7", "in memory", socket) == "TMPDIR='/scratch/my jobs' elastic status --rdzv-id=7"
    assert how_to_ask(options("--rdzv-endpoint=localhost:0"), "7", "localhost:1", socket).startswith("elastic status ")
