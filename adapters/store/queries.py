"""A query and a node's reply to it: what are your workers doing? People ask, by `elastic stacks`.

One query stands in the store at a time. Each agent reads it beside its own heartbeat, and answers a query of the present
round once.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.values import frozen
from ...core.world import Node, Stacks

LASTS_S = 60
"""A query whose asker is gone is worth nothing after this."""


@frozen
class Query:
    """A question to all agents of a job for the stacks of their workers. `id` is nobody else's."""

    id: str
    round: int
    """The round that it is about."""
    rank: int | None = None
    """The worker whose whole record is wanted."""


@frozen
class Reply:
    """It holds what one node answers. `text` is all that is known of the worker that the query names."""

    id: str
    """The query's."""
    stacks: Stacks
    text: str = ""


@frozen
class Replies:
    """It holds what stands in the store: the query, which may be somebody else's, and the replies of some nodes."""

    query: Query | None
    replies: Mapping[Node, Reply]

    def to(self, query: Query) -> Mapping[Node, Reply]:
        """Return the replies to this query."""
        return {node: reply for node, reply in self.replies.items() if reply.id == query.id}
