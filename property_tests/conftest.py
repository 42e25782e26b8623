"""The property tests run under the same Hypothesis profiles as the others, and beside them all in one runner."""

from __future__ import annotations

from pathlib import Path

import profiles  # noqa: F401
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They compute while the others wait, and what several of them look at is worked out once."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("properties"))
