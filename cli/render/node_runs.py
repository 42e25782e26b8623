"""The result of simulated runs, for people and for programs: what was done is shown beside what was found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap

from attrs import define, field

from ...adapters.simulations.campaign import Campaign
from ...core.properties.law import Law, Strength
from ...core.sim.features import PAIRS
from ...core.sim.kinds import Kind
from ...core.sim.run import Run
from ...core.sim.swarm import DRAWN, Shape
from ...core.sim.tally import LAWS, Tally
from ...core.values import frozen
from .text import many

WIDTH = 118
LABEL = 12
TIE = "\N{NO-BREAK SPACE}"
ENOUGH = 10_000
"""This many runs with all faults should show every "sometimes"; if not, the runs are drawn badly."""
NO_FAULT = (Kind.START, Kind.SUCCEED)


@frozen
class Found:
    """A run to be told: its number in the campaign, how many operations it had, and what is left of it."""

    number: int | None
    operations: int
    run: Run


@frozen
class Written:
    """A file that was written, or why it could not be."""

    what: str
    path: str
    why_not: str | None = None


@define
class Narrator:
    """A listener that prints what happens, as it happens, and remembers it."""

    say: Callable[[str], object] | None
    said: list[tuple[float, str, str]] = field(factory=list)

    def hears(self, at: float, who: str, what: str) -> None:
        self.said.append((at, who, what))
        if self.say:
            self.say(f"{at:10.3f} s  {who:<10} {what}")


# --- many runs


def summary(what: Campaign, tally: Tally, took_s: float, command: Sequence[str], strengths: bool = False) -> list[str]:
    """Return the closing table: the verdict and the seed first, then what was done and seen; `strengths`: and how often each
    law was armed."""
    hours = tally.seconds / 3_600
    head = (
        many(tally.runs, "run"),
        many(tally.steps, "step"),
        f"{hours:,.1f} simulated hours" if hours < 100 else f"{hours:,.0f} simulated hours",
        f"{tally.steps / took_s:,.0f} steps/s",
        duration(took_s),
    )
    return [
        f" {' · '.join(head)}",
        *verdict(tally, f"{what.seed:#x} · any run again: {again(what, command)}"),
        *row("register", " · ".join(_register(tally, took_s))),
        *row("features", _pairs(tally)),
        *(row("never done", ", ".join(missed)) if (missed := _never_done(what.shape, tally)) else ()),
        *found(tally, _faults(tally), "" if shows_enough(what.shape, tally) else _warning(tally), strengths),
    ]


def verdict(tally: Tally, seed: str) -> Iterator[str]:
    yield from row("violations", violations_of(tally))
    yield line("seed", seed)


def again(what: Campaign, command: Sequence[str]) -> str:
    """Return the command that tells a run again."""
    return " ".join(("elastic simulate", *command, f"--seed {what.seed:#x} --only RUN"))


def laws(strength: Strength, all_laws: Mapping[str, Law] = LAWS) -> Iterator[str]:
    """Yield the rows that say how often each law was armed and excused."""
    armed, excused = strength.armed, strength.excused
    named = {number: number.replace(" ", TIE) for number in all_laws}
    yield from row(
        "armed", "  ".join(f"{each}{TIE}{armed[number]:,}" for number, each in named.items() if armed[number])
    )
    often = (
        f"{each}{TIE}{excused[number]:,}{TIE}of{TIE}{armed[number]:,}"
        for number, each in named.items()
        if excused[number]
    )
    yield from row("excused", "  ".join(often) or "none")


def never_armed(unarmed: Sequence[str], all_laws: Mapping[str, Law] = LAWS) -> Iterator[str]:
    """Yield the rows that name the laws that were never armed."""
    if unarmed:
        yield from row("NEVER ARMED", "; ".join(f"{number} ({all_laws[number].when})" for number in unarmed))


def found(
    tally: Tally, faults: Sequence[str], warning: str, strengths: bool, all_laws: Mapping[str, Law] = LAWS
) -> Iterator[str]:
    """Yield the rows that say what was done and what it showed; `strengths`: and how often each law was armed."""
    yield from row("faults", "  ".join(faults) or "none")
    yield from row("seen", rarest_of(tally))
    yield from row("never seen", ", ".join(tally.never)) if tally.never else ()
    yield from laws(tally.strength, all_laws) if strengths else ()
    yield from never_armed(tally.unarmed, all_laws)
    yield from row("WARNING", warning) if warning else ()


def row(label: str, text: str) -> Iterator[str]:
    """Yield a row of the table, broken at blanks that are no TIE."""
    lines = wrap(text, WIDTH - LABEL, break_on_hyphens=False, break_long_words=False)
    for word, part in zip_longest([label], lines, fillvalue=""):
        yield line(word, part).replace(TIE, " ")


def line(label: str, text: str) -> str:
    """Return a row that is not broken, so that it can be copied."""
    return f" {label:<{LABEL}}{text}"


def _register(tally: Tally, took_s: float) -> tuple[str, str]:
    writes = f"{many(tally.writes, 'write')}, {tally.writes / took_s:,.0f} a second"
    return writes, f"{many(tally.rounds, 'round')} completed"


def _pairs(tally: Tally) -> str:
    """Return how many pairs of features met in one world, and which did in the fewest."""
    rarest = min(PAIRS, key=lambda pair: tally.pairs[pair])
    met = f"{len(PAIRS) - len(tally.apart)} of {len(PAIRS)} pairs met"
    return f"{met} (rarest: {' and '.join(rarest)}, {many(tally.pairs[rarest], 'run')})"


def _faults(tally: Tally) -> list[str]:
    """Return the faults, the most frequent first. Starts and successes are none."""
    often = sorted(tally.done.items(), key=lambda each: (-each[1], each[0].value))
    return [f"{kind.value}{TIE}{times:,}" for kind, times in often if kind not in NO_FAULT]


def _never_done(shape: Shape, tally: Tally) -> list[str]:
    """Return the faults that were asked for by name, and never happened."""
    asked = [kind for kind in dict.fromkeys(DRAWN) if kind in shape.faults]
    return [kind.value for kind in asked if kind not in tally.done] if len(asked) < len({*DRAWN}) else []


def rarest_of(tally: Tally) -> str:
    seen = f'{len(tally.sometimes) - len(tally.never)} of {len(tally.sometimes)} "sometimes"'
    if tally.rarest is None:
        return seen
    what, runs = tally.rarest
    return f"{seen} (rarest: {what}, {many(runs, 'run')})"


def shows_enough(shape: Shape, tally: Tally) -> bool:
    """Return True if all was seen, or if so few runs or faults need not show all."""
    everything = shape.faults >= set(DRAWN)
    return not (everything and tally.runs >= ENOUGH and (tally.never or tally.unarmed or tally.apart))


def _warning(tally: Tally) -> str:
    missed = many(len(tally.never) + len(tally.unarmed) + len(tally.apart), "thing")
    never = f"{missed} that must be seen never were, in {tally.runs:,} runs with all faults"
    return f"{never}: these runs prove nothing about them"


def violations_of(tally: Tally) -> str:
    if not tally.broken:
        return "none"
    numbers = (
        f"{number} in {many(len(found), 'run')} (first: {found[0][0]:,})" for number, found in tally.broken.items()
    )
    return ", ".join(numbers)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


# --- one run


def violation(
    found: Found, command: Sequence[str], written: Sequence[Written], replayed: str | None = None
) -> list[str]:
    """Return the property, the story that breaks it, and the command that shows it again.

    `replayed` is the file that the story was read from.
    """
    run, broken = found.run, found.run.violation
    assert broken is not None
    left = len(run.story.operations)
    where = [f"run {found.number:,}"] if found.number is not None else []
    size = (
        f"shrunk from {found.operations} operations to {left}" if left < found.operations else many(left, "operation")
    )
    return [
        line("VIOLATION", str(broken)),
        *_notes(sentence_of(broken.number), " · ".join((*where, size))),
        "",
        *(f"   {line}" for line in str(run.story).splitlines()),
        f"   → after {run.world.future.now:.3f} s: {broken.number}",
        "",
        line("replay", _replay(command, written, replayed or "FILE")),
        *files(written),
    ]


def _notes(*notes: str | None) -> list[str]:
    return [line("", note) for note in notes if note]


def _replay(command: Sequence[str], written: Sequence[Written], otherwise: str) -> str:
    """Return the command that shows it again."""
    story = next((each.path for each in written if each.what == "story" and not each.why_not), otherwise)
    own = [word for word in command if word.startswith("--property")]
    return " ".join(("elastic simulate", *own, f"--replay {story}"))


def sentence_of(number: str) -> str | None:
    """Return what must hold; None for a property of the user's own."""
    return f"must hold: {LAWS[number].sentence}" if number in LAWS else None


def all_well(run: Run, written: Sequence[Written]) -> list[str]:
    done = f"{many(run.world.steps, 'step')}, {many(run.world.writes, 'write')}, {run.world.future.now:.1f} s simulated"
    return [f" no violation · {done}", *files(written)]


def files(written: Sequence[Written]) -> list[str]:
    """Return the rows that name the files."""
    return [
        line(each.what, f"not written: {each.path}: {each.why_not}" if each.why_not else each.path) for each in written
    ]


def failures(written: Sequence[Written]) -> list[str]:
    """Return the lines beside data for programs: which files were not written, and why."""
    return [f"elastic  {each.what} not written: {each.path}: {each.why_not}" for each in written if each.why_not]


def unwritten(story: str | None, picture: str | None) -> list[Written]:
    """Return why the files that were asked for were not written, where no run breaks anything."""
    why = "no run breaks a law; --only RUN writes that of one run"
    return [Written(what, path, why) for what, path in (("story", story), ("picture", picture)) if path]


def stem(number: str, run: int) -> str:
    """Return the name of the files of a violation, like `v10-4117`."""
    return f"{re.sub(r'[^a-z0-9]+', '-', number.lower()).strip('-')}-{run}"


def title(run: Run, number: int | None, seed: int) -> str:
    which = f"run {number:,} of seed {seed:#x}" if number is not None else "a story"
    nodes, limits = run.story.setting.nodes, run.story.setting.limits
    return f"{which} · {nodes} nodes, {limits.min_nodes} to {limits.max_nodes} in a world"


# --- for programs


def data(what: Campaign, tally: Tally, took_s: float, first: Found | None) -> dict[str, object]:
    return {
        "seed": f"{what.seed:#x}",
        "runs": tally.runs,
        "steps": tally.steps,
        "simulated_s": tally.seconds,
        "took_s": took_s,
        "steps_per_s": tally.steps / took_s,
        "writes": tally.writes,
        "writes_per_s": tally.writes / took_s,
        "rounds": tally.rounds,
        "done": {kind.value: times for kind, times in sorted(tally.done.items(), key=lambda each: each[0].value)},
        **found_data(tally),
        "pairs": {",".join(pair): tally.pairs[pair] for pair in PAIRS},
        "first": told_data(first, ()) if first else None,
    }


def found_data(tally: Tally) -> dict[str, object]:
    return {
        "sometimes": {each: {"runs": tally.seen[each], "times": tally.counts[each]} for each in tally.sometimes},
        "never": list(tally.never),
        "laws": laws_data(tally.strength, tally.laws),
        "unarmed": list(tally.unarmed),
        "violations": [
            {"run": run, "number": number, "fact": broken.fact}
            for number, all_of in tally.broken.items()
            for run, broken in all_of
        ],
    }


def laws_data(strength: Strength, laws: Iterable[str] = tuple(LAWS)) -> Mapping[str, Mapping[str, int]]:
    return {each: {"armed": strength.armed[each], "excused": strength.excused[each]} for each in laws}


def told_data(found: Found, said: Sequence[tuple[float, str, str]]) -> Mapping[str, object]:
    run, broken = found.run, found.run.violation
    return {
        "run": found.number,
        "story": str(run.story).splitlines(),
        "steps": run.world.steps,
        "writes": run.world.writes,
        "simulated_s": run.world.future.now,
        "violation": {"number": broken.number, "fact": str(broken)} if broken else None,
        "told": [{"at": at, "who": who, "what": what} for at, who, what in said],
    }
