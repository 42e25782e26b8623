"""The options of torchrun that few command lines have: the second half of the manual page in `options`.

What needs a sentence from us when it is used, since it makes no difference here, has that sentence in WITHOUT_EFFECT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click
from click.core import ParameterSource

from ..adapters.launch_settings import Streams
from . import nodes, values
from .mistakes import Value, spelled
from .option import NODES, OUTPUT, WORKERS, Decorator, option

WITHOUT_EFFECT = {
    "start_method": "a script is a program of its own, so there is nothing to fork from; leave it out",
    "monitor_interval": "nothing polls here, a death is seen at once; leave it out",
}
"""Options that are accepted for torchrun's sake, and why they make no difference."""


def said_once(ctx: click.Context) -> Iterator[str]:
    """A line for each option that was given and makes no difference."""
    for param in ctx.command.get_params(ctx):
        why = _without_effect(param.name, ctx)
        if param.name and why and ctx.get_parameter_source(param.name) is not ParameterSource.DEFAULT:
            yield f"elastic: {spelled(param, ctx)} makes no difference: {why}"


def _without_effect(name: str | None, ctx: click.Context) -> str | None:
    if name in ("master_addr", "master_port") and not nodes.is_static(ctx.params):
        return "only a static rendezvous has a master; leave it out"
    if name in ("duplicate_stdout_filters", "duplicate_stderr_filters") and ctx.params["tee"] == Streams():
        return "only what is tee'd is filtered; write --tee=3 too, or leave it out"
    if name == "local_ranks_filter" and (strangers := _not_here(ctx.params[name], ctx.params["nproc_per_node"])):
        return f"there is no local rank {strangers} here; write ranks below {ctx.params['nproc_per_node']}"
    return WITHOUT_EFFECT.get(name or "")


def _not_here(ranks: Iterable[int] | None, workers: int) -> str:
    return ", ".join(str(rank) for rank in sorted(ranks or ()) if rank >= workers)


def rare_options() -> tuple[Decorator, ...]:
    return (
        option(
            "--run-path",
            WORKERS,
            is_flag=True,
            help="Run SCRIPT by runpy.run_path, so that an exception is in its error file. Stands above --module and "
            "--no-python.",
        ),
        option("--use-env", WORKERS, own=True, is_flag=True, help="The default; see --no-use-env."),
        option(
            "--no-use-env",
            WORKERS,
            own=True,
            is_flag=True,
            help="The script's first argument is --local-rank=N, as from torch.distributed.launch.",
        ),
        option(
            "--virtual-local-rank",
            WORKERS,
            is_flag=True,
            help="LOCAL_RANK=0 for every worker, each with one device of its own: CUDA_VISIBLE_DEVICES has one entry.",
        ),
        option(
            "--numa-binding",
            WORKERS,
            own=True,
            default=None,
            metavar="MODE",
            type=Value("MODE", values.numa_binding),
            help="Bind each worker to CPUs near its GPU: node (those of its NUMA node), socket, exclusive (its share of the "
            "node's cores) or core-complex (the cores of one L3 cache). Without GPUs, workers are spread over the nodes.",
        ),
        option(
            "--start-method",
            WORKERS,
            default="spawn",
            metavar="spawn|fork|forkserver",
            type=Value("METHOD", values.start_method),
            help="Accepted for torchrun's sake: every script is started as a program of its own.",
        ),
        option(
            "--master-addr",
            NODES,
            default=None,
            metavar="HOST",
            type=Value("HOST", values.host),
            help="Of static: where the agent of node rank 0 serves the store. [default: 127.0.0.1]",
        ),
        option(
            "--master-port",
            NODES,
            default=None,
            metavar="PORT",
            type=Value("PORT", values.port),
            help="Of static: the port of that store. The workers' MASTER_PORT is another. [default: 29500]",
        ),
        option(
            "--node-rank",
            NODES,
            default=None,
            metavar="N",
            type=Value("N", values.whole),
            help="This node's place among the ranks. Of static it is also its --node-id, and node rank 0 serves the store.",
        ),
        option(
            "--duplicate-stdout-filters",
            OUTPUT,
            default="",
            metavar="TEXT,...",
            type=Value("TEXT,...", values.filters),
            help="Lines of a tee'd stdout that contain one of these texts go to attempt_<round>/filtered_stdout.log too, "
            "those of all local ranks with their prefixes. A comma in a text is written twice.",
        ),
        option(
            "--duplicate-stderr-filters",
            OUTPUT,
            default="",
            metavar="TEXT,...",
            type=Value("TEXT,...", values.filters),
            help="The same for stderr, into filtered_stderr.log.",
        ),
        option(
            "--logs-specs",
            OUTPUT,
            own=True,
            default=None,
            metavar="NAME",
            type=Value("NAME", values.name),
            help="A plugin (entry point of the group torchrun.logs_specs) that says where logs go.",
        ),
    )
