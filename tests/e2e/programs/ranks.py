"""Tell this worker's place: node and group rank, local rank, world size, rank within the role."""

from __future__ import annotations

from os import environ

import stage

stage.tell(
    environ["ELASTIC_NODE_ID"],
    f"{environ['GROUP_RANK']}/{environ['GROUP_WORLD_SIZE']}",
    f"local {environ['LOCAL_RANK']}/{environ['LOCAL_WORLD_SIZE']} of {environ['WORLD_SIZE']}",
    f"{environ['ROLE_NAME']} {environ['ROLE_RANK']}/{environ['ROLE_WORLD_SIZE']}",
)
