"""What an option of `elastic launch` is: its two spellings, its PET_ variable, its section of the help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .mistakes import Mistake

WORKERS = "Workers"
NODES = "Nodes and rendezvous"
FAILURES = "Failures and ends"
OUTPUT = "Output"
SECTIONS = (WORKERS, NODES, FAILURES, OUTPUT)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Command(click.Command):
    """One whose mistakes say which option they are about, also to those who ask for its remedy."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True  # click does not say what else to write
        try:
            left = super().parse_args(ctx, args)
        except click.BadOptionUsage as mistake:
            mistake.ctx = ctx  # click does not say which command's option it was
            raise
        if left:
            raise Mistake(f"{left[0]}: {ctx.command_path} takes options alone ({ctx.command_path} --help lists them)")
        return left


class Option(click.Option):
    """An option in a section of the help, shown with its dashed spelling only."""

    def __init__(self, *args: Any, section: str, **attributes: Any) -> None:
        self.section = section
        super().__init__(*args, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        names = ", ".join(name for name in self.opts if "_" not in name)
        return (f"{names} {self.metavar}" if self.metavar else names, record[1]) if record else None


def option(name: str, section: str, *short: str, own: bool = False, **attributes: Any) -> Decorator:
    """One option, in both spellings. `own`: it is not torchrun's, so it has no PET_ variable."""
    parameter = name[2:].replace("-", "_")
    spellings = dict.fromkeys((*short, name, f"--{parameter}"))
    return click.option(
        *spellings,
        parameter,
        cls=Option,
        section=section,
        envvar=None if own else f"PET_{parameter.upper()}",
        show_default=bool(attributes.get("default")),
        **attributes,
    )
