"""Shortened long options, as argparse takes them: a beginning that only one option has.

torchrun's names come first: a beginning that is unambiguous among them means the same here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from .mistakes import Mistake


def in_full(arguments: Sequence[str], options: Sequence[click.Option]) -> list[str]:
    """Return the command line with the options before SCRIPT spelled out. Raises Mistake for an ambiguous one.

    Options are told from values as click tells them: an argument of its own may be a value, and SCRIPT ends the options.
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
            if bare := not separator and getattr(named.get(name), "bare", None):
                separator, value = "=", bare
            yield name + separator + value
            valued = not separator and name in named and not named[name].is_flag
        elif argument[2:3] == "=" and (option := named.get(argument[:2])) and not option.is_flag:
            yield _longest(option) + argument[2:]  # click would read the = as the value's first character
            valued = False
        else:
            yield argument
            valued = _waits_for_value(argument, named)
        if valued and left:
            yield left.pop(0)
    yield from left


def _full_name(name: str, named: Mapping[str, click.Option]) -> str:
    if name in named:
        return name
    meant = {_longest(option): option for full, option in named.items() if full.startswith(name)}
    theirs = {full: option for full, option in meant.items() if option.envvar}
    candidates = sorted(theirs or meant)
    if len(candidates) > 1:
        raise Mistake(f"{name}: could be {', '.join(candidates[:-1])} or {candidates[-1]}; write more of it")
    return candidates[0] if candidates else name


def _longest(option: click.Option) -> str:
    """Return the name that the help shows."""
    return max(option.opts, key=len)


def _waits_for_value(cluster: str, named: Mapping[str, click.Option]) -> bool:
    """Return True if the last of some short options (`-mr`) takes the next argument."""
    for place, letter in enumerate(cluster[1:], 2):
        option = named.get(f"-{letter}")
        if option is not None and not option.is_flag:
            return place == len(cluster)
    return False
