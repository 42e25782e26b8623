"""A TorchX component: one node of the job for each replica. It has run on TorchX's local scheduler alone.

    torchx run --scheduler=slurm torchx_component.py:elastic_launch --j=2:4x8 --script=train.py -- --epochs=10

A job of several nodes meets at the host of replica 0, whose name the scheduler puts into the environment. Replica 0 itself
finds nothing there (AWS Batch) or localhost (Kubernetes), and takes its own address. A replica that is started again takes
its old place, since its index is its node's id.
"""

import shlex

import torchx
from torchx import specs
from torchx.specs import macros

PLACE = (
    f"host=$${{{macros.rank0_env}:-localhost}}; "
    "[ $$host != localhost ] || host=$$(hostname -I | tr ' ' '\\n' | grep -m 1 -F .); "
    "place=$${host:-localhost}; "
)
"""For the shell on the node: where replica 0 is."""


def elastic_launch(
    *script_args: str,
    script: str,
    j: str = "1x1",
    max_restarts: int = 3,
    port: int = 29400,
    image: str = torchx.IMAGE,
    name: str = "elastic",
    cpu: int = 2,
    gpu: int = 0,
    memMB: int = 4096,
) -> specs.AppDef:
    """Run a script under `elastic launch`.

    Args:
        script_args: the script's own arguments, behind `--`
        script: the script that each worker runs
        j: [MIN:]NODESxWORKERS, such as 2x8, or 2:4x8 for a job that goes on with two nodes
        max_restarts: how often the job may restart
        port: a port of the host of replica 0 that the others can reach
        image: the image of the nodes, with elastic in it
        name: the name of the app
        cpu: CPUs of a node
        gpu: GPUs of a node
        memMB: memory of a node in MB
    """
    nodes, _, workers = j.partition("x")
    options = [f"--nnodes={nodes}", f"--nproc-per-node={workers}", f"--max-restarts={max_restarts}", "--tee=3"]
    if nodes == "1":
        found, place = "", "--standalone"
    else:
        found, place = PLACE, f"--rdzv-endpoint=$$place:{port} --rdzv-id={macros.app_id} --node-id={macros.replica_id}"
    role = specs.Role(
        name="node",
        image=image,
        min_replicas=int(nodes.partition(":")[0]),
        num_replicas=int(nodes.rpartition(":")[2]),
        entrypoint="bash",
        args=["-c", f"{found}exec elastic launch {place} {shlex.join([*options, script, *script_args])}"],
        resource=specs.resource(cpu=cpu, gpu=gpu, memMB=memMB),
        port_map={"rendezvous": port},
    )
    return specs.AppDef(name=name, roles=[role])
