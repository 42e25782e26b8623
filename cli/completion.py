"""`elastic completion SHELL`: the script that completes words at the tab key, and the candidates that it asks for.

The script calls this command with the words up to the cursor, and gets a line for each candidate: its kind, its text, its
help. A kind of `file` or `dir` lets the shell complete names of its own. An option's value stands behind `=` or in the next
word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from inspect import isfunction
from typing import Any, get_args, get_type_hints

import click
from click.shell_completion import CompletionItem, ShellComplete

from ..adapters.clock import SystemClock
from ..adapters.terminal import printable
from .launch import launch
from .mistakes import Value
from .option import Command
from .render.text import say

BASH = """\
_elastic_completion() {
    local kind value help IFS=$'\\t'
    COMPREPLY=()
    while read -r kind value help; do
        case $kind in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            *) COMPREPLY+=("$value") ;;
        esac
    done < <(elastic completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o nosort -F _elastic_completion elastic"""
ZSH = """\
#compdef elastic
_elastic_completion() {
    local line kind value help
    local -a values
    while IFS=$'\\t' read -r kind value help; do
        case $kind in
            file) compset -P '--*='; _files ;;
            dir) compset -P '--*='; _files -/ ;;
            *) values+=("${value//:/\\\\:}:$help") ;;
        esac
    done < <(elastic completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#values )); then
        compset -P '--*='
        _describe -V elastic values
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _elastic_completion "$@"
else
    compdef _elastic_completion elastic
fi"""
FISH = """\
function __elastic_completion
    set -l current (commandline -ct)
    set -l before (string match -r -- '^--[^=]*=' $current; or echo '')
    for line in (elastic completion fish -- (commandline -opc)[2..] "$current" 2>/dev/null)
        set -l parts (string split \\t -- $line)
        switch $parts[1]
            case file
                printf '%s\\n' $before(__fish_complete_path (string replace -- "$before" '' $current))
            case dir
                printf '%s\\n' $before(__fish_complete_directories (string replace -- "$before" '' $current))
            case '*'
                printf '%s%s\\t%s\\n' "$before" $parts[2] $parts[3]
        end
    end
end
complete --no-files --keep-order --command elastic --arguments '(__elastic_completion)'"""
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

EPILOG = """\b
  bash:  echo 'source <(elastic completion bash)' >> ~/.bashrc
  zsh:   echo 'source <(elastic completion zsh)' >> ~/.zshrc          (after compinit)
  fish:  elastic completion fish > ~/.config/fish/completions/elastic.fish
"""
_HELP_MAX = 60
_NAMES: dict[str, tuple[str, ...]] = {
    "nproc_per_node": ("auto", "cpu", "gpu", "xpu"),
    "rdzv_backend": ("c10d", "etcd", "static"),
}
"""Values of options that take others too."""
_OF_JOBS = ("cancel", "drain", "stacks", "status")
"""Commands that ask a job which may run on this host."""


def _shell(text: str) -> str:
    if text not in SHELLS:
        raise ValueError(f"write {', '.join(list(SHELLS)[:-1])} or {list(SHELLS)[-1]}")
    return text


def _shells(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(each) for each in SHELLS if each.startswith(begun)]


def _made(shell: str, words: tuple[str, ...]) -> int:
    if not words:
        return 0 if say(*SHELLS[shell].splitlines()) else 1
    with suppress(OSError):  # the shell has gone
        for item in candidates(_joined(words) if shell == "bash" else words):
            help = printable(item.help or "")[:_HELP_MAX]
            click.echo("\t".join((item.type, printable(str(item.value)), help)))
    return 0


completion = Command(
    "completion",
    callback=_made,
    params=[
        click.Argument(["shell"], type=Value("bash|zsh|fish", _shell), shell_complete=_shells),
        click.Argument(["words"], nargs=-1, type=click.UNPROCESSED, metavar="[-- WORDS...]"),
    ],
    help="""Print the script that completes commands, options, values and file names in this SHELL.

    The script calls this command with the WORDS up to the cursor.""",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def candidates(words: Sequence[str]) -> Sequence[CompletionItem]:
    """Return what the last word may become, behind its `--option=` if it has one. A mistake before it completes nothing."""
    from .root import root  # which has this command

    *before, current = words
    try:
        found = _Words(root, {}, "elastic", "").get_completions(before, current)
    except (click.ClickException, click.exceptions.Exit):
        return ()
    if not current.startswith("-") or "=" in current:
        return found
    return [each for each in found if "_" in current or "_" not in str(each.value)]


class _Words(ShellComplete):
    """The words of a command line, as click completes them; with what it does not know of values."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        option, separator, value = incomplete.rpartition("=")
        name = option if separator else args[-1] if args else ""
        begun = value if separator else incomplete
        if self._has_script(args):
            return [CompletionItem(incomplete, type="file")]
        param = self._param(args, name) if name.startswith("-") else None
        if not separator and (bare := getattr(param, "bare", None)):  # its value stands behind `=` alone
            args, param = [*args[:-1], f"{name}={bare}"], None
        values = list(_values(param, args, begun))
        return values or super().get_completions(args, incomplete)

    def _has_script(self, args: list[str]) -> bool:
        """Return True if the words of `elastic launch` name its script, to which all that follows belongs."""
        if args[:1] != ["launch"]:
            return False
        return bool(launch.make_context("launch", args[1:], resilient_parsing=True).params["script"])

    def _param(self, args: Sequence[str], name: str) -> click.Parameter | None:
        group = self.cli
        command = group.get_command(click.Context(group), args[0]) if args and isinstance(group, click.Group) else None
        named = [param for param in command.params if name in param.opts] if command else []
        return named[0] if named and not getattr(named[0], "is_flag", False) else None


def _values(param: click.Parameter | None, args: Sequence[str], begun: str) -> Iterator[CompletionItem]:
    if param is None:
        return
    known = _NAMES.get(param.name or "", ()) or (_choices(param.type) if isinstance(param.type, Value) else ())
    if param.name == "rdzv_id" and args[0] in _OF_JOBS:
        from ..adapters.store.relay.agents_here import jobs_here

        known = tuple(dict.fromkeys(job.run_id for job in jobs_here(SystemClock())[0]))
    yield from (CompletionItem(each) for each in known if each.startswith(begun))
    names = param.type.name
    if not known and ("FILE" in names or "DIR" in names):
        yield CompletionItem(begun, type="file" if "FILE" in names else "dir")


def _choices(type: Value) -> tuple[str, ...]:
    """Return the words that the reader of this value may return."""
    result: Any = get_type_hints(type.read).get("return") if isfunction(type.read) else None
    return tuple(word for each in (result, *get_args(result)) for word in get_args(each) if isinstance(word, str))


def _joined(words: Sequence[str]) -> list[str]:
    """Return bash's words with those joined again that it splits at `=` and `:`. A candidate takes the place of what is
    behind the last of these."""
    joined: list[str] = []
    for place, word in enumerate(words):
        if place and (word in ("=", ":") or words[place - 1] in ("=", ":")):
            joined[-1] += word
        else:
            joined.append(word)
    return joined
