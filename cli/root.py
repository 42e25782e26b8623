"""`elastic`: the group of its commands."""

from __future__ import annotations

from importlib import import_module

import click

from .mistakes import USAGE, Mistake
from .option import Helpful
from .render.text import say


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from .. import __version__

        say(f"elastic {__version__}")
        ctx.exit()


LATER = ("cancel", "completion", "drain", "goodput", "replay", "simulate", "stacks", "status", "store", "what-if")
"""The commands but launch. The module of a command has its name (- is _), and is imported when it is asked for."""


class _Commands(Helpful, click.Group):
    """The commands; a mistake in the first word is answered with the command that was meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(("launch", *LATER))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ("launch", *LATER):
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f".{module}", __package__), module)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option of `elastic launch` in front of the command, which users of torchrun leave out."""
        first = args[0] if args else ""
        if first.startswith("-") and first not in [name for param in self.get_params(ctx) for name in param.opts]:
            from .launch import launch

            options = {each.partition("=")[0] for each in (first, first.replace("_", "-"))}
            if options & {name for param in launch.params for name in param.opts}:
                raise Mistake(f"{first.partition('=')[0]}: write elastic launch {' '.join(args)}")
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            raise Mistake(f"{args[0]}: no such command{_meant(args[0], known)} (known: {', '.join(known)})")
        return super().resolve_command(ctx, args)


def _meant(word: str, known: list[str]) -> str:
    from difflib import get_close_matches

    if word.endswith(".py"):
        return f"; did you mean elastic launch {word}?"
    near = ["launch"] if word in ("run", "start", "torchrun") else get_close_matches(word, known, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.pass_context
def root(ctx: click.Context) -> None:
    """Launch distributed PyTorch jobs that keep training through failures."""
    if ctx.invoked_subcommand is None:
        say(*ctx.get_help().splitlines(), err=True)
        ctx.exit(USAGE)
