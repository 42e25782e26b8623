"""Shortened long options: torchrun's argparse reads them alike, and the script's own arguments stay as they are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import click
import pytest
from torch.distributed.run import get_args_parser

from elastic.cli.abbreviations import in_full
from elastic.cli.launch import launch
from elastic.cli.mistakes import Mistake

OPTIONS = [param for param in launch.params if isinstance(param, click.Option)]


def full(line: str) -> str:
    return " ".join(in_full(line.split(), OPTIONS))


LINES = [
    ("--nproc-per=2 x", "--nproc-per-node=2 x"),
    ("--nproc_per 2 x", "--nproc-per-node 2 x"),
    ("--nproc 2 x", "--nproc-per-node 2 x"),
    ("--max-r 0 --nn 1 x", "--max-restarts 0 --nnodes 1 x"),
    ("--redirect=3 x", "--redirects=3 x"),
    ("--te 3 x", "--tee 3 x"),
    ("--stand x", "--standalone x"),
    ("--nproc-per 2 x --nproc-per 3", "--nproc-per-node 2 x --nproc-per 3"),
    ("--no-py --max-r", "--no-python --max-restarts"),
    ("-- --max-r", "-- --max-r"),
    ("- --max-r", "- --max-r"),
    ("--role --max-r x", "--role --max-r x"),
    ("-r 3 --max-r 1 x", "-r 3 --max-restarts 1 x"),
    ("-r3 --max-r 1 x", "-r3 --max-restarts 1 x"),
    ("-r=3 -t=0:1,1:2 --max-r 1 x", "--redirects=3 --tee=0:1,1:2 --max-restarts 1 x"),
    ("-r= -z=1 -m=1 x", "--redirects= -z=1 -m=1 x"),
    ("-mr 3 --max-r 1 x", "-mr 3 --max-restarts 1 x"),
    ("-m --max-r 1 x", "-m --max-restarts 1 x"),
    ("-r --max-r --max-r 1 x", "-r --max-r --max-restarts 1 x"),
    ("--zeus x", "--zeus x"),
    ("", ""),
]


@pytest.mark.parametrize(("line", "spelled_out"), LINES)
def test_an_abbreviation_means_the_only_option_that_begins_with_it(line: str, spelled_out: str) -> None:
    assert full(line) == spelled_out


def test_torchrun_s_options_come_before_ours() -> None:
    """--re could be --report, and --t --trace, but a torchrun user does not know that."""
    assert full("--re 3 --t 1 x") == "--redirects 3 --tee 1 x"
    assert full("--rep a --tr b x") == "--report a --trace b x"


@pytest.mark.parametrize("name", ["--rdz", "--m", "--s", "--n"])
def test_an_ambiguous_abbreviation_is_answered_with_all_candidates(name: str) -> None:
    with pytest.raises(Mistake, match=rf"^{name}: could be --.+ or --.+; write more of it$"):
        full(f"{name}=1 x")


def prefixes(names: Sequence[str]) -> list[str]:
    return sorted({name[:end] for name in names for end in range(3, len(name) + 1)})


def test_every_abbreviation_that_torchrun_takes_means_the_same_here() -> None:
    parser = get_args_parser()
    known = {param.name for param in OPTIONS}
    theirs = [name for action in parser._actions for name in action.option_strings if name.startswith("--")]
    differing = []
    for shortened in prefixes(theirs):
        found = parser._get_option_tuples(shortened)
        meant = {action.dest for action, *_ in found}
        if len(found) == 1 and not meant & {"help"} and meant <= known:
            (option,) = (option for option in OPTIONS if full(f"{shortened} x").split()[0] in option.opts)
            differing += [shortened] if option.name not in meant else []
    assert differing == []


def test_argparse_resolves_the_abbreviations_of_the_comparison() -> None:
    """The comparison above leans on a private method; here it is seen to answer."""
    parser: argparse.ArgumentParser = get_args_parser()
    assert [found[0].dest for found in parser._get_option_tuples("--max-r")] == ["max_restarts"]
