"""The variables that hold a secret of the agent: no worker and no helper inherits them."""

from __future__ import annotations

import os
from collections.abc import Mapping

STORE_TOKEN = "ELASTIC_STORE_TOKEN"
ETCD_PASSWORD = "ELASTIC_ETCD_PASSWORD"


def without_secrets(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return this environment as another program may have it."""
    return {name: text for name, text in environment.items() if name not in (STORE_TOKEN, ETCD_PASSWORD)}
