"""How hard Hypothesis looks: "dev" draws the same examples every time, "soak" draws fresh ones, many.

HYPOTHESIS_PROFILE chooses; `make test` runs dev, `make soak` runs soak. Importing this file sets the profile.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=100, derandomize=True, database=None, deadline=None)
settings.register_profile(
    "soak", max_examples=20_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
