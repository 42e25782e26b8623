"""Long options may be shortened, as argparse takes them: to what only one option begins with.

torchrun's names count first: what is unambiguous among them means the same here, whatever else we have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from .mistakes import Mistake


def in_full(arguments: Sequence[str], options: Sequence[click.Option]) -> list[str]:
    """The command line with the options before SCRIPT spelled out. Raises Mistake for what could be several.

    Which arguments are options is read as click reads them: a value that stands alone is none, and SCRIPT ends them.
    """
    named = {name: option for option in options for name in option.opts}
    return list(_in_full(list(arguments), named))


def _in_full(left: list[str], named: Mapping[str, click.Option]) -> Iterator[str]:
    while left:
        argument = left.pop(0)
        if argument in ("-", "--") or not argument.startswith("-"):
            yield argument
            break
        if argument.startswith("--"):
            shortened, separator, value = argument.partition("=")
            name = _full_name(shortened, named)
            yield name + separator + value
            valued = not separator and name in named and not named[name].is_flag
        else:
            yield argument
            valued = _waits_for_value(argument, named)
        if valued and left:
            yield left.pop(0)
    yield from left


def _full_name(name: str, named: Mapping[str, click.Option]) -> str:
    if name in named:
        return name
    meant = {longest(option): option for full, option in named.items() if full.startswith(name)}
    theirs = {full: option for full, option in meant.items() if option.envvar}
    candidates = sorted(theirs or meant)
    if len(candidates) > 1:
        raise Mistake(f"{name}: could be {', '.join(candidates[:-1])} or {candidates[-1]}; write more of it")
    return candidates[0] if candidates else name


def longest(option: click.Option) -> str:
    """The name that the help shows."""
    return max(option.opts, key=len)


def _waits_for_value(cluster: str, named: Mapping[str, click.Option]) -> bool:
    """Whether the last of some short options (`-mr`) takes the next argument."""
    for place, letter in enumerate(cluster[1:], 2):
        option = named.get(f"-{letter}")
        if option is not None and not option.is_flag:
            return place == len(cluster)
    return False
