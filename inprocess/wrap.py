"""The wrapper, which also takes rank assignments and rank filters, and whose exceptions are `RestartError`s."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..adapters.inprocess.rank import outcomes
from ..adapters.inprocess.wrapper import wrapper
from ..adapters.inprocess.wrapper.wrapper import CallWrapper
from ..core.policies import Policy
from ..core.values import evolve
from .assignments import Assigned, Filtered
from .compose import Compose
from .exception import ended
from .rank_assignment import ActivateAllRanks, ShiftRanks
from .rank_filter import RankFilter

__all__ = ["CallWrapper", "Wrapper"]

Result = TypeVar("Result")
Given = ParamSpec("Given")


def _translating(init: Callable[Given, None]) -> Callable[Given, None]:
    """Return the constructor, which also takes a rank assignment as `rank_assignment`, and `rank_filter`, and keeps what it
    was given."""
    parameters = inspect.signature(init).parameters.values()
    defaults = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}

    @functools.wraps(init)
    def made(*bare: Any, **given: Any) -> None:
        shown = {**defaults, "rank_filter": None, **given}
        assigned = _assigned(given.get("rank_assignment"), given.pop("rank_filter", None))
        if assigned is not None:
            given["rank_assignment"] = assigned.policy
        init(*bare, **given)
        own: Any = bare[0]
        if assigned is not None:
            own.plan = evolve(own.plan, labels=assigned.says)
        own.given = {name: value for name, value in shown.items() if name not in vars(own)}

    return made


def _assigned(assignment: Any, filter: Any) -> Assigned | None:
    """Return the assignment taken apart; None for a policy, or where nothing is given. Raises TypeError and ValueError."""
    if filter is not None and not isinstance(filter, RankFilter):
        raise TypeError(f"rank_filter: a RankFilter or None, not {filter!r}")
    is_policy = assignment is None or isinstance(assignment, Policy | list | tuple) or not callable(assignment)
    if filter is None:
        return None if is_policy else Assigned.by(assignment)
    if assignment is None:
        assignment = Compose(ActivateAllRanks(), ShiftRanks())
    elif is_policy:
        raise TypeError(f"rank_filter: needs a rank assignment as rank_assignment, not {assignment!r}")
    filters: tuple[Any, ...] = filter.instances if isinstance(filter, Compose) else (filter,)
    return Assigned.by(Compose(*(Filtered(each) for each in filters), assignment))


class Wrapper(wrapper.Wrapper):
    __doc__ = wrapper.Wrapper.__doc__
    if not TYPE_CHECKING:  # a type checker knows the parameters from the base
        __init__ = _translating(wrapper.Wrapper.__init__)

        def __getattr__(self, name: str) -> Any:
            """Return a parameter as it was given."""
            if name in (given := vars(self).get("given", {})):
                return given[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def __setattr__(self, name: str, value: object) -> None:
            """Raises AttributeError for a parameter: it would have no effect."""
            if name in vars(self).get("given", {}):
                raise AttributeError(f"{name}: a wrapper's parameters are given when it is made")
            super().__setattr__(name, value)

    def __call__(self, function: Callable[..., Result]) -> Callable[..., Result | None]:
        """Return the wrapped function. What it raises at its end is a RestartError. Raises TypeError."""
        wrapped = super().__call__(function)
        if not self.enabled:
            return function

        @functools.wraps(wrapped)
        def called(*args: Any, **kwargs: Any) -> Result | None:
            try:
                return wrapped(*args, **kwargs)
            except outcomes.Stopped as stopped:
                raise ended(stopped) from stopped.__cause__

        return called
