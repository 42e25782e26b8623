"""The set-up of the property tests: the Hypothesis profiles of all tests, and one runner of several for all of these."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import profiles  # noqa: F401
import pytest

if TYPE_CHECKING:
    from runners import Apart
    from xdist.remote import Producer


@pytest.fixture(autouse=True, scope="module")
def few_collections() -> Iterator[None]:
    """Collect garbage less often: the tests keep some 100,000 states, and each collection would go through them again. Tests
    of other folders, in the same runner, collect as they always do."""
    threshold = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000)
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Apart:
    from runners import Apart

    return Apart(config, log)
