"""The set-up of the property tests: the Hypothesis profiles of all tests, and one runner of several for all of these."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import profiles  # noqa: F401
import pytest

if TYPE_CHECKING:
    from runners import Apart
    from xdist.remote import Producer


def pytest_collection_finish() -> None:
    """Look for garbage less often: the tests keep some 100,000 states, which each look would go through again."""
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Apart:
    from runners import Apart

    return Apart(config, log)
