"""An option of a command: one field of a frozen class.

The field says all that there is to say of its option, and once: name, type, how its text is read, default, variable, section
and help. `parameters` makes click's options of such a class; the class is made of what click has read:

    class LaunchOptions:
        max_restarts: int = FAILURES.option("N", values.whole, default=0)("Restarts of the job …")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

import click

from ..core.values import field, fields
from .mistakes import Mistake, Value
from .render.text import say

if TYPE_CHECKING:
    from attrs import AttrsInstance
    from click.shell_completion import CompletionItem

Made = TypeVar("Made", bound="AttrsInstance")
Read = TypeVar("Read")
_PARAMETER, _DEFAULT = "parameter", "default"
"""What a field's metadata hold."""


_HYPHEN = "\u2011"
"""A hyphen at which no line is broken; `-` is printed for it."""


class _Formatter(click.HelpFormatter):
    """Breaks no line inside a name, such as that of an option: it would be copied in two parts."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(first, text.replace("-", _HYPHEN)) for first, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_HYPHEN, "-")


class _Context(click.Context):
    formatter_class = _Formatter


class Helpful(click.Command):
    """A command whose help is told as all else is: click's own way ends with a traceback on a full disk."""

    context_class = _Context

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option:
            option.callback = _tell_help
        return option

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text below the options. A part of command lines stays as it is; the others are wrapped to the width."""
        for part in (self.epilog or "").split("\b\n"):
            lines = part.splitlines()
            if not lines:
                continue
            formatter.write_paragraph()
            with formatter.indentation():
                if lines[0].startswith(" "):
                    indent = " " * formatter.current_indent
                    formatter.write("".join(f"{indent}{line}\n" for line in lines))
                elif lines[0].endswith(":"):  # a heading, and a row for each exit code
                    formatter.write_text(lines[0])
                    formatter.write_dl(
                        [(code, means) for code, _, means in (line.strip().partition(" ") for line in lines[1:])]
                    )
                else:
                    formatter.write_text(" ".join(map(str.strip, lines)))


def _tell_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        say(*(line.rstrip(" \b") for line in ctx.get_help().splitlines()))  # click's mark of text that it does not wrap
        ctx.exit()


def file_names(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return what lets a shell complete the name of a file."""
    from click.shell_completion import CompletionItem  # a launch completes nothing

    return [CompletionItem(begun, type="file")]


class Command(Helpful):
    """A command whose mistakes name their option, and that takes no arguments but those that it declares."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True  # click's own message has no remedy
        try:
            left = super().parse_args(ctx, args)
        except click.BadOptionUsage as mistake:
            mistake.ctx = ctx  # click does not say which command's option it was
            raise
        if left:
            raise Mistake(f"{left[0]}: {ctx.command_path} takes only options ({ctx.command_path} --help lists them)")
        return left


class Option(click.Option):
    """An option in a section of the help. The help shows its dashed spelling only."""

    def __init__(self, *args: Any, section: str, bare: str | None = None, **attributes: Any) -> None:
        """`bare`: the value of the option when it stands alone; its value follows only after `=`."""
        self.section = section
        self.bare = bare
        super().__init__(*args, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        names = ", ".join(name for name in self.opts if "_" not in name)
        metavar = f"[={self.metavar}]" if self.bare else f" {self.metavar}" if self.metavar else ""
        return (f"{names}{metavar}", record[1]) if record else None


class Section:
    """A section of the help, which declares the options that stand in it.

    Each method returns a function that takes the help text and returns the field's default, so that type checkers compare
    the field's annotation with what its reader returns.
    """

    def __init__(self, title: str, variables: str = "") -> None:
        """`variables` is the prefix of the options' variables, like `PET_`; without one the options have none."""
        self.title = title
        self.variables = variables

    @overload
    def option(
        self, metavar: str, read: Callable[[str], Read], short: str = "", *, default: str | float, own: bool = False
    ) -> Callable[[str], Read]: ...

    @overload
    def option(
        self, metavar: str, read: Callable[[str], Read], short: str = "", *, own: bool = False, bare: str | None = None
    ) -> Callable[[str], Read | None]: ...

    def option(
        self,
        metavar: str,
        read: Callable[[str], Read],
        short: str = "",
        *,
        default: str | float | None = None,
        own: bool = False,
        bare: str | None = None,
    ) -> Callable[[str], Any]:
        """Declare an option whose text `read` reads; without a default, None is the option left out. `bare` is the text of
        the option when it stands alone.

        `own`: the option is not one that torchrun reads from a variable, so it has no variable here either.
        """
        text = None if default is None else str(default)
        attributes = {"metavar": metavar, "type": Value(metavar, read), "default": text, "show_default": bool(text)}
        if bare:
            attributes["bare"] = bare
        return self._declared(None if text is None else read(text), default, short, own, attributes)

    def flag(self, short: str = "", *, own: bool = False) -> Callable[[str], bool]:
        """Declare an option that has no value."""
        return self._declared(False, False, short, own, {"is_flag": True})

    def several(self, metavar: str, read: Callable[[str], Read]) -> Callable[[str], tuple[Read, ...]]:
        """Declare an option that may be given several times."""
        return self._declared((), (), "", True, {"metavar": metavar, "type": Value(metavar, read), "multiple": True})

    def _declared(self, read: object, default: object, short: str, own: bool, attributes: Any) -> Callable[[str], Any]:
        def parameter(name: str, help: str) -> Option:
            word = name.removesuffix("_")  # `with_` is --with, which is no name in Python
            spellings = dict.fromkeys((short, f"--{word.replace('_', '-')}", f"--{word}"))
            variable = None if own or not self.variables else f"{self.variables}{name.upper()}"
            return Option(
                [*filter(None, spellings), name], section=self.title, envvar=variable, help=help, **attributes
            )

        return lambda help: field(default=read, metadata={_PARAMETER: partial(parameter, help=help), _DEFAULT: default})


def parameters(*options: type) -> list[click.Parameter]:
    """Return click's options, one for each field of these classes of options, in their order."""
    return [each.metadata[_PARAMETER](each.name) for made in options for each in fields(made)]


def given_to(options: type[Made], given: Mapping[str, Any]) -> Made:
    """Return the options of this class, of those that a command was given."""
    return options(**{each.name: given[each.name] for each in fields(options)})


def defaults(options: type) -> dict[str, Any]:
    """Return what each option is when it is left out, as its declaration has it: before it is read."""
    return {each.name: each.metadata[_DEFAULT] for each in fields(options)}
