"""Write a man page for `elastic` and for each of its commands, made from their help.

python tools/man_pages.py FOLDER        (make man: build/man/man1)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from elastic import __version__
from elastic.cli.option import Option
from elastic.cli.root import root


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ctx = click.Context(root, info_name="elastic")
    commands = {name: root.get_command(ctx, name) for name in root.list_commands(ctx)}
    pages = {"elastic": root, **{f"elastic-{name}": command for name, command in commands.items() if command}}
    for name, command in pages.items():
        of = ctx if command is root else click.Context(command, ctx, info_name=name.removeprefix("elastic-"))
        also = [each for each in pages if each != name]
        (folder / f"{name}.1").write_text("\n".join(page(name, command, of, also)) + "\n")


def page(name: str, command: click.Command, ctx: click.Context, also: list[str]) -> Iterator[str]:
    """Yield the lines of a command's page, in roff."""
    first, *others = (command.help or "").split("\n\n")
    yield f'.TH {name.upper()} 1 "" "elastic {__version__}"'
    yield from (".SH NAME", rf"{roff(name)} \- {roff(line(first).rstrip('.'))}")
    yield from (".SH SYNOPSIS", rf"\fB{roff(ctx.command_path)}\fR {roff(' '.join(command.collect_usage_pieces(ctx)))}")
    yield ".SH DESCRIPTION"
    for text in (first, *others):
        yield from (roff(line(text)), ".PP")
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for each in command.list_commands(ctx):
            found = command.get_command(ctx, each)
            yield from (".TP", rf"\fB{roff(each)}\fR", roff(found.get_short_help_str(200)) if found else "")
    yield from options(command, ctx)
    yield from epilog(command.epilog or "")
    yield from (".SH SEE ALSO", ", ".join(rf"\fB{roff(each)}\fR(1)" for each in also))


def options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    section = ""
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is None:
            continue
        own = param.section if isinstance(param, Option) else section or "Options"
        if own != section:
            section = own
            yield f'.SH "{roff(section.upper())}"'
        yield from (".TP", rf"\fB{roff(record[0])}\fR", roff(record[1]))


def epilog(text: str) -> Iterator[str]:
    if text:
        yield ".SH NOTES"
    for part in text.split("\b\n"):
        lines = part.splitlines()
        if lines and lines[0].startswith(" "):
            yield from (".nf", *map(roff, lines), ".fi", ".PP")
        elif lines:
            head = [each for each in lines if not each.startswith(" ")]
            yield from (roff(" ".join(head)), ".PP")
            for code, _, means in (each.strip().partition(" ") for each in lines[len(head) :]):  # the exit codes
                yield from (".TP", rf"\fB{roff(code)}\fR", roff(means))


def line(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


def roff(text: str) -> str:
    r"""Return the text as roff prints it: `-` is a minus, and nothing at its beginning is a request."""
    return rf"\&{text}".replace("\\", r"\e").replace(r"\e&", r"\&", 1).replace("-", r"\-")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
