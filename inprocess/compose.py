"""Several callables as one."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from ..adapters.inprocess.rank.callbacks import Composed
from ..core.policies import Policy, chain


class Compose(Composed):
    """Several callables as one, composed like functions: the last is called first, and each gets what the one before it
    returned, a tuple as several arguments.

    The result is an instance of the nearest class from which all of them derive, so several aborts are an `Abort`. Several
    policies are a policy.
    """

    instances: tuple[Callable[..., Any], ...]

    def __new__(cls, *instances: Callable[..., Any] | Policy) -> Any:
        """Raises TypeError for what cannot be called."""
        if instances and all(isinstance(each, Policy) for each in instances):
            policies: Any = reversed(instances)
            return chain(*policies)
        for each in instances:
            if not callable(each):
                raise TypeError(f"Compose: {each!r} cannot be called")
        made: Any = object.__new__(_kind(_common(instances)))
        made.instances = instances
        return made

    def __init__(self, *instances: Callable[..., Any] | Policy) -> None:
        pass

    def __call__(self, *arguments: Any) -> Any:
        """Call all, the last first. What follows one that returns None gets the arguments that it got."""
        returned: Any = None
        for part in reversed(self.instances):
            returned = part(*arguments)
            arguments = _handed_on(part, arguments, returned)
        return returned

    def each(self, *arguments: Any) -> Any:
        """Do the same, and go on if one raises: what follows it gets the arguments that it got. Raises the first error."""
        returned: Any = None
        errors = list[BaseException]()
        for part in reversed(self.instances):
            try:
                returned = (part.each if isinstance(part, Composed) else part)(*arguments)
                arguments = _handed_on(part, arguments, returned)
            except BaseException as error:  # noqa: BLE001 - it is raised when all have run
                errors.append(error)
        if errors:
            raise errors[0]
        return returned


def _handed_on(part: Callable[..., Any], arguments: tuple[Any, ...], returned: Any) -> tuple[Any, ...]:
    """Return what the callable that follows this part gets."""
    if returned is None and arguments not in ((), (None,)):
        warnings.warn(f"Compose: {_name(part)} returned nothing, not what the next is to get", stacklevel=3)
    elif isinstance(returned, tuple):
        return returned
    elif _takes_any(part):
        return (returned,)
    return arguments


def _common(instances: tuple[object, ...]) -> type:
    """Return the nearest class from which all derive, and from which more can derive."""
    kinds = [type(each) for each in instances]
    ancestors = [kind for kind in kinds[0].mro() if not issubclass(kind, Composed)] if kinds else [object]
    return next(kind for kind in ancestors if _open(kind) and all(issubclass(each, kind) for each in kinds))


def _open(kind: type) -> bool:
    """Return True if classes can derive from this one: none can from the class of functions."""
    try:
        _kind(kind)
    except TypeError:
        return False
    return True


def _kind(ancestor: type) -> Any:
    bases = (Compose,) if ancestor is object else (Compose, ancestor)
    return type(ancestor)(Compose.__name__, bases, {"__new__": object.__new__, "__module__": __name__})


def _name(part: Callable[..., Any]) -> str:
    return getattr(part, "__qualname__", type(part).__qualname__)


def _takes_any(part: Callable[..., Any]) -> bool:
    try:
        return bool(inspect.signature(part).parameters)
    except (TypeError, ValueError):
        return True  # a builtin without a signature
