"""The features of a simulated world: links between its nodes, a check of each node, spans of minutes, and so on.

Each feature is drawn by a draw of its own, so that every two features meet. One table says how many worlds have a feature,
and how a setting gets it and shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

from ..rendezvous import Limits
from ..values import frozen
from .chance import Choose, one
from .story import Setting

LONG_S = 600.0
"""The time for a join in worlds with pauses and outages of minutes."""
SLOWER = 20
"""By this factor all but messages takes longer in patient worlds."""


def _nothing(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    return {}


@frozen
class Feature:
    """One feature: a word of the setting that has one of these values."""

    one_in: int
    """One world in this many has it."""
    word: str
    values: tuple[float, ...]
    more: Callable[[Choose, Setting], Mapping[str, Any]] = _nothing
    """Returns the values of other words, for a setting that gets it."""
    without: tuple[float, ...] = (0,)
    """The values of the word in settings without it."""
    plain: bool = False
    """Worlds have it too whose runs leave out kinds of faults."""
    needs: str = ""
    """It is drawn only in worlds that have this feature."""
    sizes: bool = False
    """It changes how many nodes a round may have. It is not drawn where the user has said that."""

    def is_of(self, setting: Setting) -> bool:
        return setting.value(self.word) not in self.without

    def given(self, choose: Choose, setting: Setting) -> Setting:
        """Return this setting with the feature."""
        return setting.but(**{self.word: one(choose, self.values), **self.more(choose, setting)})


def _targeted(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    limits = setting.limits
    return {"first_target": limits.min_nodes + choose(limits.max_nodes - limits.min_nodes + 1)}


def _in_units(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    """Draw the unit, with a minimum and a maximum of whole units that this many nodes can make."""
    unit = min(one(choose, (2, 2, 3)), setting.nodes)
    return {"unit": unit, **_whole(setting.limits, unit, max(setting.limits.min_nodes // unit, 1) * unit)}


def _whole(limits: Limits, unit: int, least: int) -> Mapping[str, int]:
    return {"min": least, "max": max(-(-limits.max_nodes // unit) * unit, least)}


def _in_segments(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    """Draw a unit as well, of nodes of one rack, with a minimum and a maximum that the racks can make."""
    racks = min(one(choose, (2, 2, 3)), setting.nodes // 2)
    if not racks:
        return {"racks": 0}
    unit = setting.limits.node_unit
    unit = min(unit if unit > 1 else one(choose, (2, 2, 3)), setting.nodes // racks)
    whole = sum(-((each - setting.nodes) // racks) // unit * unit for each in range(racks))
    least = min(max(setting.limits.min_nodes // unit, 1) * unit, whole)
    return {"racks": racks, "unit": unit, **_whole(setting.limits, unit, least)}


def _strictly(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    """Draw the window of the failures, with restarts enough for them, and if a node that fails too often leaves."""
    return {"window": one(choose, (8.0, 30.0)), "restarts": max(setting.limits.max_restarts, 3), "leaves": choose(2)}


def _alone(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    """Draw if workers that restart alone enter wrapped calls, and if their exit codes say what becomes of the job."""
    return {"enters": int(choose(3) > 0), "codes": int(choose(3) > 0)}


def _circling(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    """Draw if failures count, too."""
    return {"counts_failures": choose(2) == 1}


def _slowly(choose: Choose, setting: Setting) -> Mapping[str, Any]:
    spans = ("last_call", "overdue", "upscale", "barrier", "fence", "window", "hang")
    return {"join": LONG_S, **{name: getattr(setting, name) * SLOWER for name in spans}}


FEATURES: Mapping[str, Feature] = {
    "links": Feature(2, "links", (1,), plain=True),
    "helping": Feature(4, "helping", (1,), without=(8,), plain=True),
    "fence": Feature(3, "fence", (3.0,), lambda choose, setting: {"attempts": 5}, plain=True),
    "barrier": Feature(3, "barrier", (2.0,), plain=True),
    "set-aside": Feature(3, "node_failures", (1, 1, 1, 2), _strictly, plain=True),
    "give-up": Feature(3, "give_up", (1, 2, 2, 3), _circling),
    "checks": Feature(4, "checks", (1,), plain=True),
    "notices": Feature(3, "notices", (1,), plain=True),
    "units": Feature(4, "unit", (2,), _in_units, without=(1,), sizes=True),
    "segments": Feature(2, "racks", (2,), _in_segments, needs="units", sizes=True),
    "tail": Feature(5, "tail", (0.5, 3.0)),
    "unlike": Feature(4, "unlike", (2, 3), without=(1,)),
    "parties": Feature(5, "party", (2, 3), lambda choose, setting: {"party_wait": 3.0}, without=(1,)),
    "reserves": Feature(4, "reserves", (1, 2)),
    "alone": Feature(5, "alone", (1, 2), _alone),
    "first-target": Feature(7, "first_target", (1,), _targeted),
    "hang-watch": Feature(4, "hang", (4.0, 9.0)),
    "shutdown": Feature(4, "shutdown", (0.1, 2.0, 6.0)),
    "standbys": Feature(5, "standbys", (0.3, 3.0)),
    "named": Feature(2, "named", (1, 2)),
    "echoes": Feature(6, "echoes", (1,)),
    "long": Feature(53, "join", (LONG_S,), without=(15.0, 60.0)),
    "patient": Feature(51, "interval", (1.0 * SLOWER,), _slowly, without=(1.0,), plain=True),
}
"""All features, in the order in which a setting gets them: the last one changes the spans of others."""


def featured(choose: Choose, setting: Setting, plain: bool, wanted: frozenset[str], sized: bool = False) -> Setting:
    """Return this setting with the features that are wanted, and with others that are drawn. `sized`: the user has said how
    many nodes a round may have."""
    for name, feature in FEATURES.items():
        may = (feature.plain or not plain) and not (feature.sizes and sized)
        may = may and (not feature.needs or FEATURES[feature.needs].is_of(setting))
        drawn = may and choose(feature.one_in) == feature.one_in - 1
        if drawn or name in wanted:
            setting = feature.given(choose, setting)
    return setting


def features_of(setting: Setting) -> Iterator[str]:
    """Yield the features that this setting has."""
    return (name for name, feature in FEATURES.items() if feature.is_of(setting))


PAIRS = tuple(combinations(FEATURES, 2))
"""All pairs of features."""
