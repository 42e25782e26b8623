"""The token that the agents of a job share: read from a file or the environment, and hidden from everybody else."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

from ..adapters.secret_variables import STORE_TOKEN
from .mistakes import Mistake

if TYPE_CHECKING:
    from ..adapters.store.secret import Secret


def store_token(conf: Mapping[str, str], environment: MutableMapping[str, str]) -> Secret | None:
    """Return the token, if there is one; a file on the command line comes before the variable. Raises Mistake.

    The variable is removed from the environment, so that no worker inherits it.
    """
    text, path = environment.pop(STORE_TOKEN, None), conf.get("token_file")
    if path is None and text is None:
        return None
    from ..adapters.store.secret import read_secret, spoken  # most jobs have none

    try:
        return read_secret(path) if path else spoken((text or "").encode(errors="surrogateescape"))
    except ValueError as reason:
        raise Mistake(f"{f'--rdzv-conf: token_file={path}' if path else STORE_TOKEN}: {reason}") from None
