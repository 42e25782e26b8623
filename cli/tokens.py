"""The token that the agents of a job share: out of a file or the environment, and out of nobody else's sight."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from ..adapters.secret import Secret, read_secret, spoken
from .mistakes import Mistake

VARIABLE = "ELASTIC_STORE_TOKEN"


def store_token(conf: Mapping[str, str], environment: MutableMapping[str, str]) -> Secret | None:
    """The token, if there is one. The variable is taken out of the environment, so that no worker and no helper inherits
    it. As everywhere, what the command line says comes before the variable. Raises Mistake."""
    text = environment.pop(VARIABLE, None)
    if path := conf.get("token_file"):
        try:
            return read_secret(path)
        except ValueError as reason:
            raise Mistake(f"--rdzv-conf: token_file={path}: {reason}") from None
    if text is None:
        return None
    try:
        return spoken(text.encode(errors="surrogateescape"))
    except ValueError as reason:
        raise Mistake(f"{VARIABLE}: {reason}") from None
