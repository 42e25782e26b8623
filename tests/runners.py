"""Which tests go to which of several runners (pytest-xdist).

Runners work side by side on one machine, so no test chooses a name or a port itself: ports come from the kernel, hosts, jobs
and folders have names by chance, and a fixture for the session is one for each runner.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

COMPUTES = "property_tests"


class Apart(LoadScopeScheduling):  # type: ignore[misc]
    """The property tests go to one runner, which begins with them: they compute while the others wait, and what several of
    them look at is worked out once. Every other test goes to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return COMPUTES if nodeid.startswith(f"{COMPUTES}/") else nodeid
