"""How hard Hypothesis looks: "dev" draws the same examples every time, "nightly" fresh ones and more, "soak" many.

HYPOTHESIS_PROFILE chooses; `make test` runs dev, `make nightly` nightly, `make soak` soak. Importing this file sets it.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", PATIENT, max_examples=100, derandomize=True, database=None)
for name, examples in (("nightly", 1_000), ("soak", 20_000)):
    settings.register_profile(name, PATIENT, max_examples=examples, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
"""What is looked through whole, without Hypothesis, looks further too."""
