"""The exceptions of the package travel between processes."""

from __future__ import annotations

import copy
import pickle
import pkgutil
from importlib import import_module

import pytest

import elastic.adapters.inprocess
import elastic.inprocess
from elastic.adapters.inprocess.rank import outcomes
from elastic.adapters.inprocess.thread_events import Drained, Injected
from elastic.core.inprocess.words import Reason
from elastic.inprocess.exception import OutcomeUnknown, RestartAbort, Stopped, Unhealthy

ROOMS = (elastic.inprocess, elastic.adapters.inprocess)
MODULES = [
    import_module(each.name) for room in ROOMS for each in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
]
CLASSES = {
    each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, BaseException) and each.__module__.startswith("elastic.")
}
ENDS: list[BaseException] = [
    RestartAbort("stop", 1),
    Injected(7),
    Drained(),
    *(kind(Reason.JOB_LIMIT, "text") for kind in (outcomes.Stopped, Stopped)),
    *(kind(Reason.UNHEALTHY, "text") for kind in (outcomes.Unhealthy, Unhealthy)),
    *(kind(Reason.OUTCOME_UNKNOWN, "text", [5]) for kind in (outcomes.OutcomeUnknown, OutcomeUnknown)),
]
OTHERS = sorted(CLASSES - {type(each) for each in ENDS}, key=lambda each: each.__module__ + each.__name__)


@pytest.mark.parametrize(
    "error",
    [*ENDS, *(each("text") for each in OTHERS)],
    ids=lambda error: str(type(error)),
)
def test_an_exception_of_the_package_can_be_pickled_and_copied(error: BaseException) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))
        assert getattr(other, "code", None) == getattr(error, "code", None)
