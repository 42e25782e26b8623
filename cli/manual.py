"""The help of `elastic launch`: its options in sections, and the text below them."""

from __future__ import annotations

import click

from .abbreviations import in_full
from .exit_codes import EXITS
from .launch_options import SECTIONS
from .option import Command, Option

_TEXT = """\b
Everything after SCRIPT belongs to the script. ${local_rank} in an argument becomes the worker's.
\b
  elastic launch --nproc-per-node=4 train.py --epochs 10
  elastic launch --nproc-per-node=gpu --max-restarts=3 --tee=3 --log-dir=logs -m my.training
\b
Workers find torchrun's variables (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, ...) and also
ELASTIC_ROUND (the number of the job's round: a fencing token for checkpoints) and ELASTIC_NODE_ID.
OMP_NUM_THREADS is set to 1 if it is not set and the node has several workers.
\b
When a worker fails, all are stopped and, while --max-restarts allows it, started again within milliseconds.
A worker's whole process group dies with it, and all of them die with this command, whatever kills it.
\b
"""
_EXITS = "".join(f"  {code} {means} → {answer.value}\n" for code, (means, answer) in EXITS.items())
EPILOG = f"{_TEXT}Exit codes, and what a supervisor does:\n{_EXITS}"


class Manual(Command):
    """A command that shows its options in sections, and takes shortened ones."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            options = [
                param for param in self.get_params(ctx) if isinstance(param, Option) and param.section == section.title
            ]
            with formatter.section(section.title):
                formatter.write_dl([record for param in options if (record := param.get_help_record(ctx))])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        return super().parse_args(ctx, in_full(args, options))

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "SCRIPT", "[ARGUMENTS]..."]
