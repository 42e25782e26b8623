"""Mistakes in a command line: one line with option, value and remedy, and exit code 2."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from elastic.adapters.launch_settings import Kind, Program
from elastic.adapters.rendezvous import reserved_ports
from elastic.cli.launch import lines_behind_script
from elastic.cli.main import run
from elastic.core.world import LOCAL_WORLD_SIZE_MAX

ENDPOINT = "write --rdzv-endpoint=HOST:29400"
WHERE = f"several nodes must know where they meet; {ENDPOINT}, or --node-rank=N --master-addr=HOST"
COMMANDS = "cancel, completion, drain, goodput, launch, replay, simulate, stacks, status, store, what-if"
KNOWN = "this version knows c10d (a TCPStore), static (the same, at --master-addr) and etcd (v3)"
FOR_EVER = "write a number of seconds above 0; left out, the node waits as long as the others run"
MISTAKES = [
    # nodes and workers
    ("--nnodes=4:2 x", "--nnodes=4:2: the minimum (4) is above the maximum (2); write --nnodes=2:4"),
    ("--nnodes=0 x", "--nnodes=0: at least 1 node; write --nnodes=1"),
    ("--nnodes=0:3 x", "--nnodes=0:3: at least 1 node; write --nnodes=1:3"),
    ("--nnodes=1:2:3 x", "--nnodes=1:2:3: the minimum (1) is no multiple of the unit (3); write --nnodes=3:3:3"),
    ("--nnodes=two x", "--nnodes=two: write a number of nodes, MIN:MAX, or MIN:MAX:UNIT, like --nnodes=2:4"),
    ("--nnodes=4097 x", "--nnodes=4097: at most 4096 nodes"),
    ("--nnodes=1:9999 x", "--nnodes=1:9999: at most 4096 nodes"),
    ("--nnodes=2:4:2:2 x", "--nnodes=2:4:2:2: write a number of nodes, MIN:MAX, or MIN:MAX:UNIT, like --nnodes=2:4"),
    ("--nnodes=2:4:0 x", "--nnodes=2:4:0: a unit has at least 1 node; write --nnodes=2:4"),
    ("--nnodes=2:4:4097 x", "--nnodes=2:4:4097: a unit has at most 4096 nodes"),
    (
        "--nnodes=1:5:2 x",
        "--nnodes=1:5:2: the minimum (1) is no multiple of the unit (2); write --nnodes=2:4:2",
    ),
    (
        "--nnodes=3:4096:3 x",
        "--nnodes=3:4096:3: the maximum (4096) is no multiple of the unit (3); write --nnodes=3:4095:3",
    ),
    ("--node-unit=2 x", "--node-unit=2: the minimum (1) is no multiple of the unit (2); write --nnodes=2:2:2"),
    ("--node-unit=9999 x", "--node-unit=9999: a unit has at most 4096 nodes"),
    (
        "--nnodes=4:4:2 --segment=rack:4 --rdzv-endpoint=a x",
        "--segment=rack:4: --nnodes=4:4:2 says 2; write one of the two",
    ),
    (
        "--nnodes=4:4 --node-unit=2 --segment=rack:4 --rdzv-endpoint=a x",
        "--segment=rack:4: --node-unit=2 says 2; write one of the two",
    ),
    ("--segment=rack:2 x", "--segment=rack:2: the minimum (1) is no multiple of the unit (2); write --nnodes=2:2:2"),
    (
        "--segment=rack x",
        "--segment=rack: write LABEL:N, like rack:2: the label, and how many nodes with one value of it are a segment",
    ),
    ("--segment=rack:1 x", "--segment=rack:1: a segment has at least 2 nodes; write rack:2, or leave it out"),
    (
        "--segment=node_rank:2 x",
        "--segment=node_rank:2: node_rank is no label of --labels; write another one, like rack:2",
    ),
    (
        "--nnodes=4:4:2 --node-unit=4 --rdzv-endpoint=a x",
        "--node-unit=4: --nnodes=4:4:2 says 2; write one of the two",
    ),
    ("--nproc-per-node=0 x", "--nproc-per-node=0: write a number of workers, 1 or more, or one of auto, cpu, gpu, xpu"),
    (
        "--nproc_per_node=2x x",
        "--nproc-per-node=2x: write a number of workers, 1 or more, or one of auto, cpu, gpu, xpu",
    ),
    (f"--nproc-per-node={LOCAL_WORLD_SIZE_MAX + 1} x", "--nproc-per-node=65537: at most 65536 workers on one node"),
    ("--node-id= x", "--node-id=: write 1 to 256 printable characters"),
    ("--no-python -m x", "--no-python and --module: a module needs Python; leave one of them out"),
    # rendezvous
    ("--nnodes=2 x", "--nnodes=2: " + WHERE),
    ("--nnodes=1:2 x", "--nnodes=1:2: " + WHERE),
    ("--rdzv-endpoint= --nnodes=2 x", "--nnodes=2: " + WHERE),
    ("--standalone --nnodes=2 x", "--standalone: that is one node, not --nnodes=2; " + ENDPOINT + " in its place"),
    (
        "--standalone --segment=rack:2 x",
        "--standalone: that is one node, not the 2 of --segment=rack:2; leave one of the two out",
    ),
    (
        "--standalone --node-unit=4 x",
        "--standalone: that is one node, not the 4 of --node-unit=4; leave one of the two out",
    ),
    ("--standalone --nnodes=2:4 x", "--standalone: that is one node, not --nnodes=2:4; " + ENDPOINT + " in its place"),
    (
        "--rdzv-backend=etcd-v2 x",
        "--rdzv-backend=etcd-v2: " + KNOWN + "; write --rdzv-backend=etcd",
    ),
    (
        "--rdzv-backend=zeus x",
        "--rdzv-backend=zeus: " + KNOWN + "; write --rdzv-backend=c10d",
    ),
    ("--nnodes=2 --node-rank=2 x", "--node-rank=2: with --nnodes=2 the last is 1; write --nnodes=3"),
    ("--node-rank=-1 x", "--node-rank=-1: write a whole number, 0 or more"),
    ("--master-port=65536 x", "--master-port=65536: write a port, 0 to 65535"),
    ("--nnodes=2 --master-port=0 x", "--master-port=0: several nodes must know the port; write --master-port=29500"),
    ("--master-addr=a:1 x", "--master-addr=a:1: write the name or the address of a host"),
    (
        "--nnodes=2 --node-rank=0 --master-addr=192.0.2.1 x",
        (
            "--master-addr=192.0.2.1:29500: this node was told to serve the store there (is_host), but cannot assign "
            "requested address; name an address or name of this host, or is_host=false where another serves it"
        ),
    ),
    (
        "--rdzv-endpoint=a:65536 x",
        "--rdzv-endpoint=a:65536: write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets",
    ),
    (
        "--rdzv-endpoint=a:b x",
        "--rdzv-endpoint=a:b: write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets",
    ),
    (
        "--rdzv-endpoint=::1 x",
        "--rdzv-endpoint=::1: write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets",
    ),
    (
        "--rdzv-endpoint=tcp://a x",
        "--rdzv-endpoint=tcp://a: write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets",
    ),
    (
        "--rdzv-endpoint=a:0 --nnodes=1:2 x",
        "--rdzv-endpoint=a:0: several nodes must know the port; write a:29400",
    ),
    (
        "--rdzv-endpoint=a:0 --nnodes=2 --node-rank=0 x",
        "--rdzv-endpoint=a:0: several nodes must know the port; write a:29400",
    ),
    (
        "--rdzv-endpoint=[::1]:0 --nnodes=2 x",
        "--rdzv-endpoint=[::1]:0: several nodes must know the port; write [::1]:29400",
    ),
    ("--rdzv-conf=ports=9-8 x", "--rdzv-conf: ports=9-8: write LOW-HIGH, like 29400-29420"),
    (
        "--nnodes=2 --rdzv-endpoint=localhost:7 --rdzv-conf=ports=7 x",
        "--rdzv-conf: ports=7: that is the store's port; write more of them, like ports=29400-29420",
    ),
    ("--rdzv-conf=finished=yes x", "--rdzv-conf: finished=yes: write ok, or leave it out"),
    (
        "--rdzv-conf=finished=ok --rdzv-id=j x",
        "--rdzv-conf: finished=ok: needs --rdzv-id and --node-id, by which a node that comes back is known",
    ),
    ("--rdzv-conf=is_host=maybe x", "--rdzv-conf: is_host=maybe: write true, false or auto"),
    ("--last-call=soon x", "--last-call=soon: write a number of seconds, 0 or more"),
    ("--rdzv-conf=a x", "--rdzv-conf=a: 'a' is not key=value; write key=value,key=value"),
    ("--rdzv-conf=join_timeout=1, x", "--rdzv-conf=join_timeout=1,: '' is not key=value; write key=value,key=value"),
    ("--rdzv-conf=join_timeout=1h x", "--rdzv-conf: join_timeout=1h: write a number of seconds, 0 or more"),
    ("--rdzv-conf=join_timeout=0 x", "--rdzv-conf: join_timeout: a span above 0 seconds, not 0.0"),
    ("--rdzv-conf=store_type=file x", "--rdzv-conf: store_type=file: a file cannot be a job's store; leave it out"),
    ("--rdzv-conf=store_type=File x", "--rdzv-conf: store_type=file: a file cannot be a job's store; leave it out"),
    (
        "--rdzv-conf=keep_alive_max_attempt=2.5 x",
        "--rdzv-conf: keep_alive_max_attempt=2.5: write a whole number, 0 or more",
    ),
    (
        "--rdzv-conf=keep_alive_max_attempt=1 x",
        "--rdzv-conf: keep_alive_max_attempt: at least 2, or one late heartbeat is a death; not 1",
    ),
    ("--node-id= x", "--node-id=: write 1 to 256 printable characters"),
    # failures and ends
    ("--max-restarts=-1 x", "--max-restarts=-1: write a whole number, 0 or more"),
    ("--max-restarts=few x", "--max-restarts=few: write a whole number, 0 or more"),
    (f"--max-restarts={10**20} x", f"--max-restarts={10**20}: write a smaller number"),
    ("--grace=soon x", "--grace=soon: write a number of seconds, 0 or more"),
    ("--grace=nan x", "--grace=nan: write a number of seconds, 0 or more"),
    ("--shutdown-timeout=-1 x", "--shutdown-timeout=-1: write a number of seconds, 0 or more"),
    *(
        (
            f"--exit-barrier-timeout={text} x",
            f"--exit-barrier-timeout={text}: {FOR_EVER}",
        )
        for text in ("-1", "0", "never", "inf")
    ),
    (
        "--rdzv-conf=barrier_timeout=0 x",
        f"--rdzv-conf: barrier_timeout=0: {FOR_EVER}",
    ),
    ("--hang-timeout=-1 x", "--hang-timeout=-1: write a number of seconds above 0"),
    ("--restart-scope=node x", "--restart-scope=node: write group or rank"),
    ("--on-store-loss=ask x", "--on-store-loss=ask: write continue or stop"),
    (
        "--on-store-loss=stop --rdzv-conf=keep_alive_interval=0.5 x",
        (
            "--on-store-loss=stop: fence: 1.25 to 1 s with a TTL of 2.5 s and a heartbeat each 0.5 s, not 1.5; "
            "heartbeats of 1 s and more attempts leave time to stop the workers, like "
            "--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=5"
        ),
    ),
    ("--monitor-interval=0 x", "--monitor-interval=0: write a number of seconds above 0"),
    (
        "--signals-to-handle=SIGFOO x",
        "--signals-to-handle=SIGFOO: 'SIGFOO' is no signal; write names like SIGTERM,SIGINT",
    ),
    (
        "--signals-to-handle=SIGTERM,SIGCHLD x",
        (
            "--signals-to-handle=SIGTERM,SIGCHLD: SIGCHLD says that a child of the launcher has ended, and asks for "
            "nothing; leave it out"
        ),
    ),
    (
        "--drain-signal=SEGV x",
        "--drain-signal=SEGV: SIGSEGV says that the launcher itself crashed, and asks for nothing; leave it out",
    ),
    (
        "--drain-signal=WINCH x",
        "--drain-signal=WINCH: SIGWINCH says that the terminal has another size, and asks for nothing; leave it out",
    ),
    ("--drain-signal= x", "--drain-signal=: '' is no signal; write names like SIGTERM,SIGINT"),
    ("--drain-signal=USR1,USR2 x", "--drain-signal=USR1,USR2: write one signal, like USR1"),
    (
        "--signals-to-handle=SIGTERM,SIGKILL x",
        "--signals-to-handle=SIGTERM,SIGKILL: SIGKILL cannot be handled by any program; leave it out",
    ),
    # output
    ("--log-dir=/proc/version x", "--log-dir=/proc/version: is a file; name a directory"),
    (
        "-r 4 x",
        (
            "--redirects=4: '4' is not a choice of streams: write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), "
            "or one for each local rank, like 0:3,1:2"
        ),
    ),
    ("--local-ranks-filter=a x", "--local-ranks-filter=a: write local ranks with commas between, like 0,1"),
    (
        "--duplicate-stdout-filters=a,b, x",
        (
            "--duplicate-stdout-filters=a,b,: a text is empty, and every line contains it; write texts with commas "
            "between, ,, for a comma"
        ),
    ),
    ("--status=loud x", "--status=loud: write auto, live, plain or off"),
    (
        "--report=/nowhere/x.json x",
        "--report=/nowhere/x.json: no file can be written there; name a file in a directory that exists",
    ),
    (
        "--trace=/nowhere/x x",
        "--trace=/nowhere/x: no file can be written there; name a file in a directory that exists",
    ),
    (
        "--trace=/proc/version/ x",
        "--trace=/proc/version/: no file can be made there; name a directory that can be written to",
    ),
    (
        "--trace=/dev/full --no-python true",
        "--trace=/dev/full: no space left on device; name a file that can be written to",
    ),
    # the command line itself
    ("-m train.py", "train.py: a module's name has no .py; write train, or leave --module out"),
    ("", "SCRIPT is missing: write elastic launch [OPTIONS] SCRIPT [ARGUMENTS]..."),
    ("-m", "SCRIPT is missing: write elastic launch [OPTIONS] SCRIPT [ARGUMENTS]..."),
    ("--nprocs=2 x", "--nprocs: no such option; did you mean --nproc-per-node? (elastic launch --help lists them)"),
    ("--num_machines=2 x", "--num_machines: no such option; did you mean --nnodes? (elastic launch --help lists them)"),
    (
        "--rdzv-e= --rdz=1 x",
        "--rdz: could be --rdzv-backend, --rdzv-conf, --rdzv-endpoint or --rdzv-id; write more of it",
    ),
    ("--max=few x", "--max-restarts=few: write a whole number, 0 or more"),
    ("--numa-binding=zz x", "--numa-binding=zz: write node, socket, exclusive or core-complex"),
    ("--start-method=zz x", "--start-method=zz: write spawn, fork or forkserver"),
    ("--use-env --no-use-env x", "--use-env and --no-use-env: one is the other's opposite; leave one of them out"),
    ("-x y", "-x: no such option (elastic launch --help lists them)"),
    ("--max-restarts", "--max-restarts: needs a value, like --max-restarts=N"),
    ("-r", "-r: needs a value, like --redirects=STD"),
    ("--standalone=1 x", "--standalone: takes no value; write --standalone alone, or leave it out"),
]


@pytest.mark.parametrize(("given", "answer"), MISTAKES, ids=[given or "nothing" for given, _ in MISTAKES])
def test_a_mistake_is_answered_with_option_value_and_remedy(
    mistake: Callable[..., str], given: str, answer: str
) -> None:
    assert mistake(*given.split()) == answer


VARIABLES = [
    ("PET_NNODES", "0", "PET_NNODES=0: at least 1 node; write --nnodes=1"),
    ("PET_MAX_RESTARTS", "many", "PET_MAX_RESTARTS=many: write a whole number, 0 or more"),
    (
        "PET_RDZV_ENDPOINT",
        "a b",
        "PET_RDZV_ENDPOINT=a b: write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets",
    ),
    ("PET_STANDALONE", "maybe", "PET_STANDALONE=maybe: write 1 or 0, true or false, yes or no"),
    ("PET_NO_PYTHON", "2", "PET_NO_PYTHON=2: write 1 or 0, true or false, yes or no"),
    ("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "x", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=x: write a number of seconds, 0 or more"),
    (
        "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
        "-1",
        f"TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT=-1: {FOR_EVER}",
    ),
]


@pytest.mark.parametrize(("name", "text", "answer"), VARIABLES)
def test_a_mistake_in_a_variable_names_the_variable(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch, name: str, text: str, answer: str
) -> None:
    monkeypatch.setenv(name, text)
    assert mistake("x") == answer


def test_missing_gpus_are_a_mistake_and_a_number_is_the_remedy(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    answer = mistake("--nproc-per-node=gpu", "x")
    assert answer.startswith("--nproc-per-node=gpu: ") and answer.endswith("write a number, like --nproc-per-node=8")


def test_fewer_devices_than_workers_with_one_each_are_a_mistake(
    mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    assert mistake("--virtual-local-rank", "--nproc-per-node=3", "x") == (
        "--virtual-local-rank: 3 workers, each with a device of its own, but CUDA_VISIBLE_DEVICES=4,6 names 2; write "
        "--nproc-per-node=2"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert mistake("--virtual-local-rank", "--nproc-per-node=2", "x").endswith("names 0; leave it out")


def test_a_share_without_a_core_is_a_mistake(mistake: Callable[..., str]) -> None:
    answer = mistake("--numa-binding=exclusive", "--nproc-per-node=10000", "x")
    assert re.fullmatch(
        r"--numa-binding=exclusive: NUMA node 0 has \d+ cores for \d+ workers; write --numa-binding=node", answer
    )


def test_a_log_directory_that_cannot_be_made_is_a_mistake(mistake: Callable[..., str]) -> None:
    assert mistake("--log-dir=/proc/logs", "x").startswith(
        "--log-dir=/proc/logs: no such file or directory; name a directory"
    )


@pytest.mark.parametrize("option", ["--report=x.json", "--trace=x.ndjson", "--trace=traces/"])
def test_a_file_of_a_working_directory_that_was_removed_is_a_mistake(
    mistake: Callable[..., str], gone: None, option: str
) -> None:
    assert mistake(option, "/x") == f"{option}: this working directory was removed; go to another one"


def test_a_mistake_leaves_no_file_behind(mistake: Callable[..., str], tmp_path: Path) -> None:
    mistake(f"--log-dir={tmp_path}/logs", "--nnodes=0", "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    ["--metrics-handler=nobody", "--metrics-handler=console --nnodes=2 --node-rank=0 --master-addr=192.0.2.1"],
)
def test_a_refused_launch_leaves_no_thread_and_no_log_handler(mistake: Callable[..., str], arguments: str) -> None:
    before = set(threading.enumerate())
    mistake("--event-log-handler=console", *arguments.split(), "x")
    assert set(threading.enumerate()) <= before
    assert logging.getLogger("torchelastic-events-console").handlers == []


def test_an_option_of_the_launcher_behind_the_script_is_named() -> None:
    behind = "train.py, which gets it; the options of elastic launch come before the script"
    given = ("--epochs=3", "--nproc_per_node=2", "--rdzv-id", "a", "--rdzv_id=b", "--max-restarts", "3")
    for kind in (Kind.SCRIPT, Kind.MODULE):
        assert list(lines_behind_script(Program(kind, "train.py", given))) == [
            f"elastic: {name} stands behind {behind}" for name in ("--nproc-per-node", "--rdzv-id", "--max-restarts")
        ]
    assert list(lines_behind_script(Program(Kind.BINARY, "torchrun", given))) == []


def test_no_command_at_all_is_answered_with_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    code = run([])
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: elastic ") and "\n  launch " in err


def test_an_unknown_command_is_answered_with_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["lunch"]) == 2
    assert capfd.readouterr().err == (f"elastic: lunch: no such command; did you mean launch? (known: {COMMANDS})\n")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (
            "simulat",
            f"simulat: no such command; did you mean simulate? (known: {COMMANDS})",
        ),
        ("run train.py", f"run: no such command; did you mean launch? (known: {COMMANDS})"),
        ("health", f"health: no such command (known: {COMMANDS})"),
        (
            "train.py --epochs 10",
            (f"train.py: no such command; did you mean elastic launch train.py? (known: {COMMANDS})"),
        ),
        (
            "--nproc_per_node=2 train.py",
            "--nproc_per_node: write elastic launch --nproc_per_node=2 train.py",
        ),
        ("-m pkg.train", "-m: write elastic launch -m pkg.train"),
        (
            "launch --rdzv_endpiont=a x",
            (
                "--rdzv_endpiont: no such option; did you mean --rdzv-conf or --rdzv-endpoint? (elastic launch --help lists "
                "them)"
            ),
        ),
        ("store gpu-01", "gpu-01: elastic store takes only options (elastic store --help lists them)"),
        ("simulate 1000", "1000: elastic simulate takes only options (elastic simulate --help lists them)"),
        ("simulate --picture=run.png", "--picture=run.png: the picture is an SVG; write run.svg"),
        ("replay --picture=job.png x.ndjson", "--picture=job.png: the picture is an SVG; write job.svg"),
        ("goodput --picture=job.png x.ndjson", "--picture=job.png: the picture is an SVG; write job.svg"),
        ("goodput /proc/self", "/proc/self: is a directory; name its files: /proc/self/*.ndjson"),
        ("replay /proc/self", "/proc/self: is a directory; name its files: /proc/self/*.ndjson"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(
    capfd: pytest.CaptureFixture[str], given: str, answer: str
) -> None:
    assert run(given.split()) == 2
    assert capfd.readouterr() == ("", f"elastic: {answer}\n")


@pytest.mark.parametrize(
    "content",
    [
        "print(1)\n",
        '{"lr": 0.1}\n',
        '{\n  "format": 1,\n  "epochs": 3\n}\n',
        '{"is":"step"}\n',
        "<html></html>\n",
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="3"/></svg>\n',
    ],
)
@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("launch --trace={} x", "trace"),
        ("launch --report={} x", "report"),
        ("simulate --picture={}", "picture"),
        ("replay --picture={} x", "picture"),
        ("goodput --picture={} x", "picture"),
        ("simulate --story={}", "story"),
    ],
)
def test_no_file_of_another_kind_is_written_over(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, given: str, what: str, content: str
) -> None:
    file = tmp_path / "mine"
    file.write_text(content)
    arguments = given.format(file).split()
    assert run(arguments) == 2
    assert capfd.readouterr().err == f"elastic: {arguments[1]}: is there already, and is no {what}; name a new file\n"
    assert file.read_text() == content


def test_each_option_takes_the_file_that_it_wrote(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = f"{tmp_path}/trace.ndjson"
    job = ["launch", f"--report={tmp_path}/report.json", f"--trace={trace}", "--status=off", "--no-python", "true"]
    assert run(job) == 0
    for command in ("replay", "goodput"):
        for _ in range(2):
            assert run([command, trace, f"--picture={tmp_path}/{command}.svg"]) == 0, capfd.readouterr().err
    assert run(job) == 0, capfd.readouterr().err


def test_a_report_goes_to_the_end_of_an_output_that_has_lines_already(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    command = [sys.executable, "-m", "elastic", "launch", "--report=/dev/stdout", "--status=off", "--no-python", "true"]
    with log.open("a") as output:
        subprocess.run(command, check=True, stdout=output)
    before, _, report = log.read_text().partition("\n")
    assert before == "before" and json.loads(report)["ending"]["state"] == "succeeded"


def test_a_filter_of_absent_ranks_makes_no_difference_and_a_line_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "--nproc-per-node=2", "--local-ranks-filter=1,5", "--no-python", "true"]) == 0
    assert capfd.readouterr().err.startswith(
        "elastic: --local-ranks-filter makes no difference: there is no local rank 5 here; write ranks below 2\n"
    )


@pytest.mark.parametrize(
    ("lacks", "answer"),
    [
        (errno.EADDRINUSE, "address already in use"),
        (errno.EMFILE, "too many open files; write: ulimit -n 4096"),
    ],
)
def test_a_host_without_a_free_port_or_descriptor_is_a_mistake(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lacks: int, answer: str
) -> None:
    monkeypatch.setattr(reserved_ports, "_bind", Mock(side_effect=OSError(lacks, os.strerror(lacks))))
    assert run(["launch", "--no-python", "true"]) == 2
    assert capfd.readouterr().err == f"elastic: no agent can run on this host: {answer}\n"
