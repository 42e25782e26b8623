"""The property tests run under the same Hypothesis profiles as the others, and beside them all in one of several runners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import profiles  # noqa: F401
import pytest

if TYPE_CHECKING:
    from runners import Apart
    from xdist.remote import Producer


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Apart:
    from runners import Apart

    return Apart(config, log)
