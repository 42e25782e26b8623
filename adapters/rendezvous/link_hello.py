"""The hello of a link between two agents, as bytes: who speaks, in which run, and a proof that it knows the job's token.

One line of JSON from each side. With a token each hello has a challenge, and the answer to it carries a proof: an HMAC over
the challenge, the run, the speaker and its side. So what one side has proven cannot be sent back to it, or elsewhere.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from ...core.values import frozen
from ...core.world import Node

if TYPE_CHECKING:
    from ..store.secret import Secret

NAME = "elastic link 1"
"""The format; another one is no hello for this version."""
BYTES_MAX = 1024
"""The longest line."""
HELLO_S = 2.0
"""A connection, and the hello on it, may take this many seconds."""
ALIVE, GOODBYE = b".", b"!"
"""Each is all that is sent after the hellos."""
OBSERVER, WATCHED = "observer", "watched"
"""The names of the two sides in a proof."""


@frozen
class Hello:
    run: str
    node: Node
    challenge: str = ""
    proof: str = ""


def spoken(hello: Hello) -> bytes:
    node = hello.node
    return json.dumps([NAME, hello.run, node.slot, node.incarnation, hello.challenge, hello.proof]).encode() + b"\n"


def heard(line: bytes) -> Hello:
    """Return the hello in this line. Raises ValueError."""
    try:
        name, run, slot, incarnation, challenge, proof = json.loads(line)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"no hello: {error}") from None
    if name != NAME or type(incarnation) is not int or {type(each) for each in (run, slot, challenge, proof)} != {str}:
        raise ValueError("no hello of this version")
    return Hello(run, Node(slot, incarnation), challenge, proof)


def belongs(hello: Hello, run_id: str, token: Secret | None) -> bool:
    """Return True if the speaker of this hello is of this run, and has a token if this side has one."""
    return hello.run == run_id and bool(hello.challenge) == (token is not None)


def challenge(token: Secret | None) -> str:
    """Return a number that nobody can guess; nothing for a job without a token."""
    return os.urandom(16).hex() if token else ""


def proof(token: Secret | None, side: str, hello: Hello, challenge: str) -> str:
    """Return the proof of the speaker of this hello, which stands on this side, for the challenge of the other."""
    if token is None:
        return ""
    from hmac import digest  # with OpenSSL behind it: 5 ms for a job that has a token

    said = json.dumps([NAME, side, challenge, hello.run, hello.node.slot, hello.node.incarnation])
    return digest(token.value, said.encode(), "sha256").hex()


def proves(token: Secret | None, side: str, hello: Hello, challenge: str) -> bool:
    """Return True if the speaker of this hello knows the token; always for a job without one."""
    if token is None:
        return True
    from hmac import compare_digest

    return compare_digest(hello.proof.encode(errors="replace"), proof(token, side, hello, challenge).encode())
