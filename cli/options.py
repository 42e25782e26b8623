"""The options of `elastic launch`, as a manual page: names, where each stands in the help, defaults, variables.

torchrun's options keep their names, in both spellings, and their PET_ variables; the command line comes before the variable,
the variable before the default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import values
from .mistakes import Value
from .option import FAILURES, NODES, OUTPUT, WORKERS, Decorator, option
from .rare_options import rare_options


def _options() -> tuple[Decorator, ...]:
    return (
        option(
            "--nproc-per-node",
            WORKERS,
            default="1",
            metavar="N",
            type=Value("N", values.workers),
            help="Workers on this node: a number, gpu or xpu (one per device), cpu (one per CPU), auto (one per device if "
            "there is any, else per CPU).",
        ),
        option("--module", WORKERS, "-m", is_flag=True, help="SCRIPT is a module: run it as python -m does."),
        option("--no-python", WORKERS, is_flag=True, help="SCRIPT is a program of its own: execute it without Python."),
        option(
            "--role",
            WORKERS,
            default="default",
            metavar="NAME",
            type=Value("NAME", values.name),
            help="The role of this node's workers (ROLE_NAME; ROLE_RANK counts within a role).",
        ),
        option(
            "--standalone",
            NODES,
            is_flag=True,
            help="One node, nothing to agree with others, no port: the default for one node without an endpoint.",
        ),
        option(
            "--nnodes",
            NODES,
            default="1",
            metavar="N|MIN:MAX",
            type=Value("N|MIN:MAX", values.nodes),
            help="Nodes of the job. With MIN:MAX it starts with MIN after the last call, and grows and shrinks between.",
        ),
        option(
            "--rdzv-backend",
            NODES,
            default=None,
            metavar="NAME",
            type=Value("NAME", values.name),
            help="Where the job's state is kept: c10d is our protocol on a TCPStore, which one of the agents serves; static "
            "is the same, at --master-addr; etcd is the same on an etcd v3 cluster, which outlives any node. [default: "
            "c10d with an endpoint, else static]",
        ),
        option(
            "--rdzv-endpoint",
            NODES,
            default=None,
            metavar="HOST[:PORT],...",
            type=Value("HOST[:PORT],...", values.endpoints),
            help="Where nodes meet, the same on all. The agent on HOST serves the store there, and the store goes with it, "
            "unless elastic store serves it there already. [default port: 29400] Of an etcd: its members, also as URLs "
            "(etcd://h1,h2,h3; https://h1:2379). [default port: 2379]",
        ),
        option(
            "--rdzv-id",
            NODES,
            default=None,
            metavar="ID",
            type=Value("ID", values.name),
            help="The job's name, the same on all nodes (TORCHELASTIC_RUN_ID, log directory). [default: none with an "
            "endpoint or a --master-port, else a random one]",
        ),
        option(
            "--rdzv-conf",
            NODES,
            default="",
            metavar="K=V,...",
            type=Value("K=V,...", values.configuration),
            help="Spans in seconds: join_timeout=600, last_call_timeout=5, close_timeout=5, keep_alive_interval=1, "
            "keep_alive_max_attempt=5 (a node that misses so many heartbeats is lost), upscale_after=1; and is_host=auto, "
            "token_file=FILE (a secret that all agents share: what others write into the store is then refused). "
            "Of an etcd: cacert=FILE, cert=FILE, key=FILE, user=NAME, password_file=FILE.",
        ),
        option(
            "--last-call",
            NODES,
            own=True,
            default=None,
            metavar="S",
            type=Value("S", values.seconds),
            help="How long a round that has MIN nodes waits for more. [default: last_call_timeout of --rdzv-conf, 5]",
        ),
        option(
            "--local-addr",
            NODES,
            default=None,
            metavar="ADDRESS",
            type=Value("ADDRESS", values.host),
            help="How others reach this node; MASTER_ADDR when rank 0 is here. "
            "[default: the address from which it reaches the endpoint]",
        ),
        option(
            "--node-id",
            NODES,
            own=True,
            default=None,
            metavar="ID",
            type=Value("ID", values.name),
            help="This node's place in the job, as its supervisor counts (ELASTIC_NODE_ID). A later start with the "
            "same id takes over its place. [default: address and a random id]",
        ),
        option(
            "--max-restarts",
            FAILURES,
            default="0",
            metavar="N",
            type=Value("N", values.whole),
            help="Restarts of the whole job after failures of workers; more fail the job.",
        ),
        option(
            "--restart-scope",
            FAILURES,
            own=True,
            default="group",
            metavar="group|rank",
            type=Value("group|rank", values.restart_scope),
            help="What is started again when a worker fails: all of the job, or that worker alone, at most --max-restarts "
            "times in a round of this node. For programs that restart inside their processes (elastic.inprocess).",
        ),
        option(
            "--grace",
            FAILURES,
            own=True,
            default="30",
            metavar="S",
            type=Value("S", values.seconds),
            help="From SIGTERM to SIGKILL when workers are stopped for a restart.",
        ),
        option(
            "--shutdown-timeout",
            FAILURES,
            default=None,
            metavar="S",
            type=Value("S", values.seconds),
            help="The same when this command itself is told to stop. [default: TORCH_ELASTIC_SHUTDOWN_TIMEOUT or 30]",
        ),
        option(
            "--on-store-loss",
            FAILURES,
            own=True,
            default="continue",
            metavar="continue|stop",
            type=Value("continue|stop", values.on_store_loss),
            help="When the store is out of reach: let the workers run on, or kill them before the other nodes could hold "
            "this one for lost and start without it (fencing).",
        ),
        option(
            "--signals-to-handle",
            FAILURES,
            default="SIGTERM,SIGINT,SIGHUP,SIGQUIT",
            metavar="NAMES",
            type=Value("NAMES", values.signals),
            help="Signals that stop the job in order: passed on to the workers, which have --shutdown-timeout to end. "
            "A second one kills them.",
        ),
        option(
            "--monitor-interval",
            FAILURES,
            default="0.1",
            metavar="S",
            type=Value("S", values.some_seconds),
            help="Accepted for torchrun's sake. Nothing polls here: a death is seen at once.",
        ),
        option(
            "--log-dir",
            OUTPUT,
            default=None,
            metavar="DIR",
            type=Value("DIR", values.directory),
            help="Where logs go: DIR/<run id>_<random>/attempt_<round>/<local rank>/. /dev/null stores nothing. "
            "[default: a directory of /tmp, removed if nothing is in it]",
        ),
        option(
            "--redirects",
            OUTPUT,
            "-r",
            default="0",
            metavar="STD",
            type=Value("STD", values.streams),
            help="Streams that go to log files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank: 0:3,1:2.",
        ),
        option(
            "--tee",
            OUTPUT,
            "-t",
            default="0",
            metavar="STD",
            type=Value("STD", values.streams),
            help="Streams that go to log files and, line by line with a prefix, to the console.",
        ),
        option(
            "--local-ranks-filter",
            OUTPUT,
            default="",
            metavar="RANKS",
            type=Value("RANKS", values.local_ranks),
            help="Only these local ranks reach the console; the output of the others goes to their log files.",
        ),
        option(
            "--status",
            OUTPUT,
            own=True,
            default="auto",
            metavar="auto|live|plain|off",
            type=Value("", values.status),
            help="What this command says of itself on stderr: lines, below them live what is waited for; plain lines; or "
            "nothing but a report of failure. auto is live on a terminal, else plain.",
        ),
        option(
            "--report",
            OUTPUT,
            own=True,
            default=None,
            metavar="FILE.json",
            type=Value("FILE", values.report_file),
            help="Write how the job ended, and every failure, to this file.",
        ),
        option(
            "--trace",
            OUTPUT,
            own=True,
            default=None,
            metavar="FILE|DIR/",
            type=Value("FILE|DIR/", values.trace_file),
            help="Write down every step of this agent, for elastic replay: appended to FILE, or to a file of DIR that is "
            "named after the node. Wrapped functions (elastic.inprocess) are traced beside it.",
        ),
        option(
            "--event-log-handler",
            OUTPUT,
            default="null",
            metavar="NAME",
            type=Value("NAME", values.name),
            help="Who is told torch's events: null, console (stderr, a line of JSON each), or an installed package's entry "
            "point in torchrun.event_handlers.",
        ),
        option(
            "--metrics-handler",
            OUTPUT,
            own=True,
            default="null",
            metavar="NAME",
            type=Value("NAME", values.name),
            help="Who is told torch's counts and durations: null, console (stderr), or an entry point in "
            "torchrun.metrics_handlers.",
        ),
    )


def all_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in reversed((*_options(), *rare_options())):
        command = decorate(command)
    return command
