"""The environment of a worker: torchrun's names and values, and ours.

Differences from torchrun 2.13, on purpose: MASTER_ADDR and MASTER_PORT are fresh for every round, and the store there is
worker rank 0's (TORCHELASTIC_USE_AGENT_STORE=False) unless the agent of rank 0 serves the job's store;
TORCHELASTIC_RESTART_COUNT is the job's, the same on every worker.
ELASTIC_ROUND is the fencing token for whoever writes checkpoints; ELASTIC_RELAY and ELASTIC_WORLD say where the workers of
this world may keep a register of their own (adapters/store/relay/relay_server.py), ELASTIC_NOTICE where they are told that
the node is drained (notices.py), ELASTIC_PROGRESS where they say what they have done (../messages/progress.py),
ELASTIC_STANDBYS how many standbys the node keeps for workers that start again alone, ELASTIC_PARTY who was started together,
ELASTIC_LABELS what its user says of it, ELASTIC_PORTS the ports at which the node may listen, if it may not have any, and
ELASTIC_TRACE, under --trace alone, where wrapped functions write their traces. The token of the job's store is the agents'
alone: the command takes it out of the environment before anything is started (cli/tokens.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import assert_never

from ....core.ranks import Ranks, WorkerRanks
from ....core.world import Node, World
from ...addresses import ANY, PORTS, ports_spelled
from ...launch_settings import Function, LaunchSettings, Program
from ...secret_variables import without_secrets
from ...store.relay.relay_server import VARIABLE as RELAY
from ..messages.notices import VARIABLE as NOTICE
from ..messages.notices import notice_path
from ..messages.progress import VARIABLE as PROGRESS

SCOPE = "ELASTIC_RESTART_SCOPE"
"""The restart scope: a worker that fails is started again with all others (group) or by itself (rank)."""
WORLD = "ELASTIC_WORLD"
"""The identity of the workers' world, or of their generation if workers restart alone: on all nodes, and never again."""
GENERATION = "ELASTIC_GENERATION"
"""The first round of this generation, if workers restart alone."""
STANDBYS = "ELASTIC_STANDBYS"
"""How many standbys the node keeps, from which a worker is started again alone; unset: none."""
LABELS = "ELASTIC_LABELS"
"""The node's labels, as `rack=r7,zone=b`; unset: it has none."""
PARTY = "ELASTIC_PARTY"
"""The number of workers that the node has started together, and the node: `8 n0#1700000000000`; 1 for one that started
again alone."""
TRACE = "ELASTIC_TRACE"
"""The directory that gets the traces of wrapped functions; unset: none are written."""
OURS = frozenset(
    {
        *(SCOPE, WORLD, GENERATION, STANDBYS, LABELS, PARTY, PORTS, RELAY, NOTICE, PROGRESS),
        *("ELASTIC_ROUND", "ELASTIC_NODE_ID", "ELASTIC_NODE_CHECK", "ELASTIC_START_UP", "ELASTIC_STANDBY"),
    }
)
"""The variables that only a launcher sets. A launcher that a worker starts inherits none of them."""
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""torch's variable: True if an agent serves the workers' store, and worker rank 0 is a client too."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_OF_ROUND = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    AGENT_STORE,
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_ERROR_FILE",
    "ELASTIC_ROUND",
    WORLD,
    GENERATION,
    PARTY,
)


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what workers inherit of a launcher's environment: not what another launcher says to its own workers."""
    return {name: text for name, text in environment.items() if name not in OURS}


def environment(
    settings: LaunchSettings, node: Node, world: World, ranks: Ranks, worker: WorkerRanks
) -> dict[str, str]:
    """Return the whole environment of one worker but for its error file; its own variables override inherited ones."""
    master = world.profiles[0].endpoint
    return {
        **lasting_environment(settings, node.slot),
        "RANK": str(worker.rank),
        "LOCAL_RANK": str(worker.local_rank),
        "GROUP_RANK": str(ranks.group_rank),
        "ROLE_RANK": str(worker.role_rank),
        "WORLD_SIZE": str(ranks.world_size),
        "GROUP_WORLD_SIZE": str(ranks.group_world_size),
        "ROLE_WORLD_SIZE": str(ranks.role_world_size),
        "MASTER_ADDR": master.address,
        "MASTER_PORT": str(master.port),
        AGENT_STORE: str(agent_serves(settings, world)),
        "TORCHELASTIC_RESTART_COUNT": str(world.failures),
        "ELASTIC_ROUND": str(world.round),
        WORLD: _world(settings, world),
        **({GENERATION: str(world.generation.round)} if settings.group.alone else {}),
        PARTY: party(len(ranks.workers), node),
        **(_own_device(settings.environment.get(_VISIBLE), worker.local_rank) if settings.virtual_local_rank else {}),
    }


def agent_serves(settings: LaunchSettings, world: World) -> bool:
    """Return True if the agent of the first node serves this world's store, as on all its nodes: they read one profile, and
    have one restart scope. A store for workers that start again alone would keep what their predecessors wrote."""
    return bool(world.profiles[0].serves_store) and settings.group.alone is None


def _world(settings: LaunchSettings, world: World) -> str:
    if settings.group.alone is None:
        return f"{world.id.life.nonce}.{world.id.life.epoch}.{world.round}"
    return f"{world.generation.job}.{world.generation.round}"


def party(size: int, node: Node) -> str:
    """Return the value of ELASTIC_PARTY."""
    return f"{size} {node}"


def lasting_environment(settings: LaunchSettings, slot: str) -> dict[str, str]:
    """Return what the environments of all rounds have in common."""
    given = without_secrets(settings.environment)
    return {
        **_threads(settings.local_world_size),
        **given,
        "ROLE_NAME": settings.role,
        "LOCAL_WORLD_SIZE": str(settings.local_world_size),
        "TORCHELASTIC_RUN_ID": settings.run_id,
        "TORCHELASTIC_MAX_RESTARTS": str(settings.rendezvous.limits.max_restarts),
        AGENT_STORE: "False",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": ",".join(handled.name for handled in settings.signals),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": given.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        "ELASTIC_NODE_ID": slot,
        SCOPE: "group" if settings.group.alone is None else "rank",
        RELAY: settings.relay,
        **({NOTICE: notice_path(settings.relay)} if settings.relay else {}),
        **_standbys(settings),
        **({} if settings.listening.ports == ANY else {PORTS: ports_spelled(settings.listening.ports)}),
        **({LABELS: ",".join(f"{name}={value}" for name, value in settings.labels)} if settings.labels else {}),
    }


def _standbys(settings: LaunchSettings) -> Mapping[str, str]:
    if settings.standby is None or settings.group.alone is None:
        return {}
    return {STANDBYS: str(settings.standby.count or settings.local_world_size)}


def names_of_round(settings: LaunchSettings) -> frozenset[str]:
    """Return the names of the variables that a worker has only once its round is known."""
    of_hangs = (PROGRESS,) if settings.hang else ()
    return frozenset((*_OF_ROUND, *of_hangs, *((_VISIBLE,) if settings.virtual_local_rank else ())))


def _own_device(visible: str | None, local_rank: int) -> Mapping[str, str]:
    """Return the variables of --virtual-local-rank: the worker sees its own device alone, as number 0."""
    device = str(local_rank) if visible is None else visible.split(",")[local_rank].strip()
    return {"LOCAL_RANK": "0", _VISIBLE: device}


def _threads(local_world_size: int) -> Mapping[str, str]:
    """Keep each of several workers on one host from taking all of its cores, unless the user sets the variable."""
    return {"OMP_NUM_THREADS": "1"} if local_world_size > 1 else {}


def command(program: Program | Function, local_rank: int) -> tuple[str, ...]:
    """Return the command of one worker: in each word but the first `${local_rank}` is replaced and `$$` read as `$`.
    A function's arguments are treated so where it is called."""
    match program:
        case Program(arguments=arguments):
            first, *words = *program.command, *arguments
            return (first, *(substituted(word, local_rank) for word in words))
        case Function(folder=folder, python=python):
            from . import function  # a program's launch needs none of it

            return (python, "-u", "-P", function.__file__, folder)
        case other:
            assert_never(other)


def substituted(word: str, local_rank: int) -> str:
    return Template(word).safe_substitute(local_rank=local_rank) if "$" in word else word
