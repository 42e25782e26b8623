"""A smaller run that breaks the same property by a story that is quicker to read.

The tries leave out a stretch of operations or two single ones, use fewer nodes, plainer settings, merged waits and rounder
spans. The first try that still breaks the property is the next story, until no try does. Every try is smaller in one order
(fewer operations, then plainer words), so this ends; `tries` bounds how long it may take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, combinations, pairwise, takewhile

from ..values import evolve
from .kinds import Kind
from .run import Run, tell
from .story import QUICK, SPAN_MAX, WORDS, Operation, Setting, Story, slot

TRIES = 3_000
PAIRS_MAX = 24
"""Up to this many operations, two that do not stand together are left out as well."""
PLAIN_S = (1.0, 2.0, 5.0, 10.0, 30.0, 0.1, 0.01)
"""Spans, the plainest first."""
SIZES = ("nodes", "min", "max")


def shrunk(run: Run, tries: int = TRIES, again: Callable[[Story], Run] | None = None) -> Run:
    """Return the run without what its violation does not need; a run without a violation is returned as it is."""
    again = again or partial(tell, ends=run.ends, also=run.world.witness.judge.also, own=run.world.own)
    while run.violation is not None:
        number = run.violation.number
        smaller = None
        for story in smaller_stories(run.story):
            if tries == 0:
                return run
            tries -= 1
            tried = again(story)
            if tried.violation is not None and tried.violation.number == number:
                smaller = tried
                break
        if smaller is None:
            return run
        run = smaller
    return run


def smaller_stories(story: Story) -> Iterator[Story]:
    """Yield the stories to try next, in order."""
    return chain(
        _shorter(story),
        _merged(story),
        _in_fewer_nodes(story),
        (evolve(story, setting=setting) for setting in _plainer(story.setting)),
        _rounder(story),
        _without_two(story),
    )


def _shorter(story: Story) -> Iterator[Story]:
    """Yield the story without a stretch of operations: long stretches first, late ones first."""
    operations = story.operations
    size = len(operations)
    while size:
        for start in range(len(operations) - size, -1, -size):
            yield evolve(story, operations=operations[:start] + operations[start + size :])
        size //= 2


def _without_two(story: Story) -> Iterator[Story]:
    operations = story.operations
    if len(operations) <= PAIRS_MAX:
        for first, second in combinations(range(len(operations)), 2):
            kept = (each for index, each in enumerate(operations) if index not in (first, second))
            yield evolve(story, operations=tuple(kept))


def _merged(story: Story) -> Iterator[Story]:
    """Yield the story with two neighbouring waits as one."""
    operations = story.operations
    for index, (this, following) in enumerate(pairwise(operations)):
        span = this.span + following.span
        if this.kind is Kind.PASS and following.kind is Kind.PASS and span <= SPAN_MAX:
            one = Operation(Kind.PASS, span=span)
            yield evolve(story, operations=(*operations[:index], one, *operations[index + 2 :]))


def _in_fewer_nodes(story: Story) -> Iterator[Story]:
    """Yield the story with only the slots that it uses, under the first names; then with each limit lowered."""
    setting, limits, unit = story.setting, story.setting.limits, story.setting.limits.node_unit
    used = dict.fromkeys(each.slot for each in story.operations if each.kind.takes_node)
    if len(used) < setting.nodes:
        names = {was: slot(index) for index, was in enumerate(used)}
        operations = tuple(evolve(each, slot=names.get(each.slot, "")) for each in story.operations)
        for nodes in range(max(len(used), unit), setting.nodes):
            whole = nodes // unit * unit
            sizes = {"nodes": nodes, "min": min(limits.min_nodes, whole), "max": min(limits.max_nodes, whole)}
            try:
                fewer = _sized(setting, **sizes)
            except ValueError:  # fewer racks may make no whole segment
                continue
            yield Story(fewer, operations)
    if limits.max_nodes > limits.min_nodes:
        yield evolve(story, setting=_sized(setting, max=limits.max_nodes - unit))
    if limits.min_nodes > unit:
        yield evolve(story, setting=setting.but(min=limits.min_nodes - unit))


def _sized(setting: Setting, **sizes: int) -> Setting:
    return setting.but(first_target=min(setting.first_target, sizes["max"]), **sizes)


def _plainer(setting: Setting) -> Iterator[Setting]:
    """Yield the setting with one plain value more, and with a small seed."""
    for word in WORDS:
        plain = QUICK.value(word)
        if word not in SIZES and setting.value(word) != plain:
            try:
                yield setting.but(**{word: plain})
            except ValueError:
                continue
    for seed in takewhile(lambda seed: seed < setting.seed, range(1, 10)):
        yield evolve(setting, seed=seed)


def _rounder(story: Story) -> Iterator[Story]:
    """Yield the story with one plainer span."""
    operations = story.operations
    for index, each in enumerate(operations):
        if each.kind.takes_span:
            for span in takewhile(lambda plain: plain != each.span, PLAIN_S):  # noqa: B023  used at once
                yield evolve(story, operations=(*operations[:index], evolve(each, span=span), *operations[index + 1 :]))
