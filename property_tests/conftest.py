"""The property tests run under the same Hypothesis profiles as the others."""

import profiles  # noqa: F401
