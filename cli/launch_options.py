"""The options of `elastic launch`, declared once: names, types, defaults, variables, sections, help.

torchrun's options keep their names, in both spellings, and their PET_ variables. The command line comes before the variable,
the variable before the default.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..adapters.launch_settings import Streams
from ..core.rendezvous.settings import FailureLimit
from ..core.rendezvous.state import Limits
from ..core.values import frozen
from . import values
from .mistakes import spelled
from .option import Section

if TYPE_CHECKING:
    from ..adapters.workers.worker_port import LogsSpecs

WORKERS = Section("Workers", "PET_")
NODES = Section("Nodes and rendezvous", "PET_")
FAILURES = Section("Failures and ends", "PET_")
OUTPUT = Section("Output", "PET_")
SECTIONS = (WORKERS, NODES, FAILURES, OUTPUT)
"""In the order of the help."""


@frozen(kw_only=True, eq=False, repr=False)  # each generated method takes time at the start of every launch
class LaunchOptions:
    """The options of a command line. PET_ variables and defaults fill in what it leaves out."""

    nproc_per_node: int = WORKERS.option("N", values.workers, default=1)(
        "Workers on this node: a number, gpu or xpu (one per device), cpu (one per CPU), auto (one per device if there is "
        "any, else one per CPU)."
    )
    module: bool = WORKERS.flag("-m")("SCRIPT is a module: run it as python -m does.")
    no_python: bool = WORKERS.flag()("SCRIPT is a program of its own: execute it without Python.")
    role: str = WORKERS.option("NAME", values.role, default="default")(
        "The role of this node's workers (ROLE_NAME; ROLE_RANK counts within a role)."
    )
    run_path: bool = WORKERS.flag()(
        "Run SCRIPT with runpy.run_path, so that the error file holds its exception. Overrides --module and --no-python."
    )
    use_env: bool = WORKERS.flag(own=True)("The default; see --no-use-env.")
    no_use_env: bool = WORKERS.flag(own=True)(
        "Pass --local-rank=N to SCRIPT as its first argument, as torch.distributed.launch does."
    )
    virtual_local_rank: bool = WORKERS.flag()(
        "Set LOCAL_RANK=0 for every worker and give each one device: its CUDA_VISIBLE_DEVICES has one entry."
    )
    numa_binding: values.NumaBinding | None = WORKERS.option("MODE", values.numa_binding, own=True)(
        "Bind each worker to CPUs near its GPU: node (those of its NUMA node), socket, exclusive (its share of the node's "
        "cores) or core-complex (the cores of one L3 cache). Without GPUs, workers are spread over the nodes."
    )
    standby: values.Standbys | None = WORKERS.option("N", values.standbys, own=True, bare="each")(
        "Keep N spare processes (without N: one per worker) that have already done the script's imports, so a restart skips "
        "them."
    )
    preload: tuple[str, ...] | None = WORKERS.option("MODULE,...", values.modules, own=True)(
        "What standbys import. [default: the installed modules that SCRIPT and its own modules import first of all]"
    )
    show_preload: bool = WORKERS.flag(own=True)("Show what standbys would import, and why, and end.")
    start_method: values.StartMethod = WORKERS.option("spawn|fork|forkserver", values.start_method, default="spawn")(
        "Accepted for torchrun's command lines, without effect: every script is started as a program of its own."
    )

    standalone: bool = NODES.flag()(
        "Run one node that agrees with no other and opens no port. The default for one node without an endpoint."
    )
    nnodes: Limits = NODES.option("N|MIN:MAX[:UNIT]", values.nodes, default=1)(
        "Nodes of the job. With MIN:MAX the job starts when MAX nodes are there, or --last-call seconds after MIN are; "
        "later nodes may join and leave within these limits. UNIT is --node-unit."
    )
    node_unit: int | None = NODES.option("N", values.positive, own=True)(
        "The job runs on a multiple of N nodes. Nodes over that are spares. Give all nodes the same. [default: UNIT of "
        "--nnodes, else 1]"
    )
    segment: tuple[str, int] | None = NODES.option("LABEL:N", values.segment, own=True)(
        "The job runs on whole segments: N nodes with the same value of this label (see --labels), which get neighbouring "
        "ranks. Nodes that make no whole segment are spares. nvlink: the label is the NVLink domain, as NVML tells it. Give "
        "all nodes the same."
    )
    rdzv_backend: str | None = NODES.option("NAME", values.name)(
        "Where the job's state is kept. c10d: a TCPStore that one of the agents serves. static: the same, at --master-addr. "
        "etcd: an etcd v3 cluster, which outlives any node. [default: etcd for an endpoint etcd://..., static with a "
        "--node-rank, --master-addr or --master-port, else c10d]"
    )
    rdzv_endpoint: values.Endpoints | None = NODES.option("HOST[:PORT],...", values.endpoints)(
        "Where nodes meet, the same on all. The agent on HOST serves the store there, unless elastic store serves it "
        "already; the store ends with its agent. [default under Slurm: its first node] [default port: 29400] For an etcd: "
        "its members, also as URLs (etcd://h1,h2,h3; https://h1:2379). [default port: 2379]"
    )
    rdzv_id: str | None = NODES.option("ID", values.name_or_none)(
        "The job's name, the same on all nodes (TORCHELASTIC_RUN_ID, log directory). [default: none with an endpoint or a "
        "--master-port, under Slurm JOB.RESTARTS[.STEP] for several nodes without one, else a random one]"
    )
    rdzv_conf: Mapping[str, str] = NODES.option("K=V,...", values.configuration, default="")(
        "Spans in seconds: join_timeout=600, last_call_timeout=5, close_timeout=5, keep_alive_interval=1, "
        "keep_alive_max_attempt=5 (a node that misses so many heartbeats is lost), upscale_after=1. Also is_host=auto and "
        "same_program=true (a node that runs a program of another name is refused), token_file=FILE (a secret that all "
        "agents share: the store then refuses what others write), peer_links=true (agents watch each other by TCP), "
        "ports=LOW-HIGH (links and MASTER_PORT have these ports, for a firewall), finished=ok (a node that is started again "
        "after its job has succeeded ends with 0). For an etcd: "
        "cacert=FILE, cert=FILE, key=FILE, user=NAME, password_file=FILE."
    )
    last_call: float | None = NODES.option("S", values.seconds, own=True)(
        "How long a round that has MIN nodes waits for more. [default: last_call_timeout of --rdzv-conf, 5]"
    )
    local_addr: str | None = NODES.option("ADDRESS", values.host_or_none)(
        "How other nodes reach this one; MASTER_ADDR when rank 0 is here. [default: the address from which it reaches the "
        "endpoint]"
    )
    node_id: str | None = NODES.option("ID", values.name, own=True)(
        "This node's place in the job, as its supervisor counts (ELASTIC_NODE_ID). A later start with the same id takes "
        "over its place. [default: address and a random id]"
    )
    labels: tuple[tuple[str, str], ...] = NODES.option("NAME=VALUE,...", values.labels, default="", own=True)(
        "What this node is (its rack, say), for --rank-policy and for the rank policies of wrapped functions: by_label."
    )
    rank_policy: tuple[str, ...] = NODES.option("group_by(KEY,...)", values.rank_policy, default="", own=True)(
        "Give nodes neighbouring ranks that have the same value of this label, the widest key first; host and role are keys "
        "too. Give all nodes the same."
    )
    master_addr: str | None = NODES.option("HOST", values.host_or_none)(
        "For static: the host where the agent of node rank 0 serves the store. [default: 127.0.0.1]"
    )
    master_port: int | None = NODES.option("PORT", values.master_port)(
        "For static: the port of that store. The workers' MASTER_PORT is another one. [default: the endpoint's, else 29500]"
    )
    node_rank: int | None = NODES.option("N", values.whole)(
        "This node's place among the ranks. For static it is also its --node-id, and node rank 0 serves the store. "
        "[default: under Slurm SLURM_NODEID and SLURM_PROCID, else by the hosts' names, and later by arrival]"
    )

    max_restarts: int = FAILURES.option("N", values.whole, default=0)(
        "How often the whole job is restarted after failures of workers; one failure more fails the job."
    )
    max_node_failures: FailureLimit | None = FAILURES.option("K/S", values.node_failures, own=True)(
        "Set a node aside that was the first cause of K failures within S seconds, while the others are enough. It comes "
        "back after S seconds, and after twice as long each further time. [default: it stays]"
    )
    leave_after: FailureLimit | None = FAILURES.option("K/S", values.node_failures, own=True)(
        "Let a node leave that was the first cause of K failures within S seconds, or that was lost and started again K "
        "times: its agent ends with 4, and something else is to replace it. [default: it stays]"
    )
    give_up_after: int | None = FAILURES.option("K", values.rounds, own=True)(
        "End the job with exit code 6 when K rounds in a row were ended by a lost node or its return, or by a failure, and "
        "none of them made progress: by a step of elastic.progress() above all before, or by the age --progress-after. "
        "0: never. [default: 20, and failures do not count]"
    )
    progress_after: float = FAILURES.option("S", values.some_seconds, default=300, own=True)(
        "The age at which a round has made progress for --give-up-after, whatever its steps."
    )
    restart_scope: values.RestartScope = FAILURES.option("group|rank", values.restart_scope, default="group", own=True)(
        "What a worker's failure restarts: the whole job, or that worker alone, at most --max-restarts times in a round of "
        "this node. For programs that restart inside their processes (elastic.inprocess)."
    )
    grace: float = FAILURES.option("S", values.seconds, default=30, own=True)(
        "How long workers that are stopped for a restart have between SIGTERM and SIGKILL."
    )
    shutdown_timeout: float | None = FAILURES.option("S", values.seconds)(
        "The same when this command itself is told to stop. [default: TORCH_ELASTIC_SHUTDOWN_TIMEOUT or 30]"
    )
    exit_barrier_timeout: float | None = FAILURES.option("S", values.exit_barrier)(
        "How long this node waits for the other nodes' workers when its own have succeeded. Then it ends with 0; one that "
        "serves the store does so until they are gone. [default: TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT, or barrier_timeout of "
        "--rdzv-conf, or as long as they run]"
    )
    linger: float = FAILURES.option("S", values.seconds, default=5, own=True)(
        "How long processes that workers have left may run on after the job has succeeded, such as an uploader. 0: they are "
        "killed with their worker."
    )
    on_store_loss: values.OnStoreLoss = FAILURES.option(
        "continue|stop", values.on_store_loss, default="continue", own=True
    )(
        "While the store is out of reach: let the workers run on, or kill them before the other nodes could declare this "
        "one lost and start without it (fencing)."
    )
    node_check: tuple[str, ...] | None = FAILURES.option("COMMAND", values.command, own=True)(
        "A program that checks this node before it joins first, and again after a failure that began here. Exit code 0: "
        "the node is healthy. 1: it stays out, with the last line that was printed as the reason. Another: a warning. A "
        "COMMAND that cannot be executed is a mistake. Elastic brings two: python -m elastic.examples.node_check.host "
        "checks load, memory and disks, python -m elastic.examples.node_check.gpus the GPUs."
    )
    node_check_timeout: float = FAILURES.option("S", values.some_seconds, default=60, own=True)(
        "How long that program may take. Then it is killed, and the node joins with a warning. A --watch-check has the same "
        "limit."
    )
    watch_check: tuple[str, ...] | None = FAILURES.option("COMMAND", values.command, own=True)(
        "A program that checks this node while the job runs. Exit code 1, and one that takes longer than its limit: the "
        "node is drained, must be gone after --drain-deadline, and its agent ends with 4. Another exit code: a warning."
    )
    watch_check_every: float = FAILURES.option("S", values.some_seconds, default=60, own=True)(
        "How long after one such check, or after the start, the next one begins."
    )
    hang_timeout: float | None = FAILURES.option("S", values.some_seconds, own=True)(
        "Suspect a hang when no worker of this node makes progress for so long: calls elastic.progress(), or prints to a "
        "log file, or moves in its main thread. The stacks of all nodes are reported. [default: nobody looks]"
    )
    on_hang: values.OnHang = FAILURES.option("report|restart", values.on_hang, default="report", own=True)(
        "What follows when all nodes suspect a hang: a report alone, or a failure of the rank that is elsewhere than all "
        "others, which costs a restart."
    )
    signals_to_handle: tuple[signal.Signals, ...] = FAILURES.option(
        "NAMES", values.signals, default="SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    )(
        "Signals that stop the job in order: they are passed on to the workers, which have --shutdown-timeout to end. A "
        "second signal kills them."
    )
    drain_signal: signal.Signals | None = FAILURES.option("NAME", values.drain_signal, own=True)(
        "A signal that drains this node: its workers are told, and it leaves when they are ready, or in time before "
        "--drain-deadline. Slurm sends one by --signal=USR1@120. It goes to all processes, so workers ignore it."
    )
    drain_file: str | None = FAILURES.option("FILE", values.path, own=True)("A file whose appearance does the same.")
    drain_deadline: float = FAILURES.option("S", values.notice_seconds, default=120, own=True)(
        "How long after that signal, or that file, this node must be gone."
    )
    monitor_interval: float = FAILURES.option("S", values.some_seconds, default=0.1)(
        "Accepted for torchrun's command lines, without effect: nothing polls here, a death is seen at once."
    )

    log_dir: str | None = OUTPUT.option("DIR", values.directory)(
        "Where logs go: DIR/<run id>_<random>/attempt_<round>/<local rank>/. /dev/null stores nothing. [default: a "
        "directory in /tmp, removed if it stays empty]"
    )
    redirects: Streams = OUTPUT.option("STD", values.streams, "-r", default=0)(
        "Streams that go to log files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank: 0:3,1:2."
    )
    tee: Streams = OUTPUT.option("STD", values.streams, "-t", default=0)(
        "Streams that go to log files and, line by line with a prefix, to the console."
    )
    local_ranks_filter: frozenset[int] | None = OUTPUT.option("RANKS", values.local_ranks, default="")(
        "Only these local ranks write to the console; the output of the others goes to their log files."
    )
    status: values.Status = OUTPUT.option("auto|live|plain|off", values.status, default="auto", own=True)(
        "What this command reports on stderr. live: lines, and below them what it waits for. plain: lines only. off: only a "
        "report of failure. auto: live on a terminal, else plain."
    )
    report: str | None = OUTPUT.option("FILE.json", values.report_file, own=True)(
        "Write how the job ended, and every failure, to this file."
    )
    trace: str | None = OUTPUT.option("FILE|DIR/", values.trace_file, own=True)(
        "Record every step of this agent for elastic goodput and elastic replay: appended to FILE, or to a file of DIR that "
        "is named after the node. Wrapped functions (elastic.inprocess) are traced beside it."
    )
    event_log_handler: str = OUTPUT.option("NAME", values.name, default="null")(
        "Where torch's events go: null, console (stderr, one line of JSON each), or an installed package's entry point in "
        "torchrun.event_handlers."
    )
    metrics_handler: str = OUTPUT.option("NAME", values.name, default="null", own=True)(
        "Where torch's counts and durations go: null, console (stderr), or an entry point in torchrun.metrics_handlers."
    )
    metrics: tuple[str, int] | None = OUTPUT.option("[HOST:]PORT", values.listener, own=True)(
        "Serve metrics of this node and its job to Prometheus, under /metrics of this port; without a HOST to this host."
    )
    otel_endpoint: str | None = OUTPUT.option("URL", values.web_address, own=True)(
        "Send a span for each recovery of this node, with its phases, to this receiver of OpenTelemetry, by OTLP over HTTP "
        "(URL/v1/traces). OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_HEADERS count."
    )
    duplicate_stdout_filters: tuple[str, ...] = OUTPUT.option("TEXT,...", values.filters, default="")(
        "Copy the lines of a tee'd stdout that contain one of these texts to attempt_<round>/filtered_stdout.log, those of "
        "all local ranks with their prefixes. A comma in a text is written twice."
    )
    duplicate_stderr_filters: tuple[str, ...] = OUTPUT.option("TEXT,...", values.filters, default="")(
        "The same for stderr, to filtered_stderr.log."
    )
    logs_specs: str | LogsSpecs | None = OUTPUT.option("NAME", values.name, own=True)(
        "A plugin that decides where logs go: an entry point of the group torchrun.logs_specs."
    )

    @property
    def uses_etcd(self) -> bool:
        """Return True if the backend is an etcd, by its own name or by that in the endpoint."""
        by_url = self.rdzv_endpoint is not None and self.rdzv_endpoint.scheme == "etcd"
        return (self.rdzv_backend == "etcd" or by_url) and not self.standalone

    @property
    def backend(self) -> str:
        """Return where the job's state is kept, as torchrun names it: c10d, static, etcd, or another name that was given.

        torchrun's default is static. An endpoint without a node rank and a master is enough for c10d.
        """
        if self.standalone:
            return "c10d"
        static = self.node_rank is not None or self.master_addr is not None or self.master_port is not None
        return self.rdzv_backend or ("etcd" if self.uses_etcd else "static" if static else "c10d")

    @property
    def is_static(self) -> bool:
        """Return True if the nodes meet at a master, and a node rank is also a node's id."""
        return self.backend == "static"


# --- options that make no difference

WITHOUT_EFFECT = {
    "start_method": "every script is started as a program of its own; leave it out",
    "monitor_interval": "nothing polls here, a death is seen at once; leave it out",
}


def lines_without_effect(options: LaunchOptions, ctx: click.Context) -> Iterator[str]:
    """Yield a line for each option that was given and makes no difference."""
    without_effect = {**WITHOUT_EFFECT, **dict(_without_effect(options))}
    for param in ctx.command.get_params(ctx):
        why = without_effect.get(param.name or "")
        if param.name and why and ctx.get_parameter_source(param.name) is not ParameterSource.DEFAULT:
            yield f"elastic: {spelled(param, ctx)} makes no difference: {why}"


def _without_effect(options: LaunchOptions) -> Iterator[tuple[str, str]]:
    if options.no_python and not options.run_path:
        yield "standby", "only a Python program has imports; leave it out"
    if options.no_python or (options.standby is None and not options.show_preload):
        yield "preload", "only standbys import it; write --standby too, or leave it out"
    if options.node_check is None and options.watch_check is None:
        yield "node_check_timeout", "no check is run; write --node-check=COMMAND too, or leave it out"
    if options.watch_check is None:
        yield "watch_check_every", "no check is run; write --watch-check=COMMAND too, or leave it out"
    if options.hang_timeout is None:
        yield "on_hang", "nobody looks for hangs; write --hang-timeout=S too, or leave it out"
    if not options.is_static:
        why = "only a static rendezvous has a master; leave it out"
        yield from (("master_addr", why), ("master_port", why))
    elif options.nnodes.max_nodes == 1:
        yield "master_addr", "one node needs no master; leave it out"
    if options.tee == Streams():
        why = "only a tee'd stream is filtered; write --tee=3 too, or leave it out"
        yield from (("duplicate_stdout_filters", why), ("duplicate_stderr_filters", why))
    if absent := _absent(options.local_ranks_filter or (), options.nproc_per_node):
        yield "local_ranks_filter", f"there is no local rank {absent} here; write ranks below {options.nproc_per_node}"


def _absent(ranks: Iterable[int], workers: int) -> str:
    return ", ".join(str(rank) for rank in sorted(ranks) if rank >= workers)
