"""A Slurm cluster of three nodes on this machine: munged, slurmctld and three slurmd with a network and a name of their own.

Debian's daemons run as they are, with a configuration in a folder of the test. Nothing of the machine's own /etc is read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest
from attrs import frozen
from netlab import MINE, Host, Network, network
from processes import comes_true

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "nsenter", "unshare")
NODES = ("n1", "n2", "n3")
REQUEUE_PAUSE_S = 2.0
"""Slurm revokes the credentials of a job that it queues again by the second. Until then it starts that job in vain."""
CONFIGURATION = """\
ClusterName=el
SlurmctldHost={here}({net}.{mine})
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPort=26817
SlurmdPort=26818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_min_interval=0,sched_interval=1
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@frozen
class Cluster:
    folder: Path
    environment: Mapping[str, str]

    def asks(self, *command: str) -> str:
        """Return what a command of Slurm's says."""
        return subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    def submits(self, script: str, folder: Path, *arguments: str) -> str:
        """Queue this script with these arguments, which runs in that folder; return the number of the job."""
        (folder / "job.sh").write_text(script)
        options = "--parsable", f"--chdir={folder}", f"--output={folder}/output"
        return self.asks("sbatch", *options, str(folder / "job.sh"), *arguments)

    def state(self, job: str) -> str:
        return self.asks("squeue", "--noheader", f"--jobs={job}", "--states=all", "--format=%T")

    def starts_again_at_once(self, job: str) -> None:
        """Start a job that is queued again now; Slurm lets it wait for two minutes."""
        assert comes_true(lambda: self.state(job) == "PENDING")
        since = time.monotonic()
        assert comes_true(lambda: time.monotonic() > since + REQUEUE_PAUSE_S)
        self.asks("scontrol", "update", f"jobid={job}", "StartTime=now")

    def is_idle(self) -> bool:
        return self.asks("sinfo", "--noheader", "--format=%T") == "idle"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster whose nodes are idle; gone at the end. Skips where there is no Slurm."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(
            f"no {', '.join(missing)}; write: apt-get install --no-install-recommends slurm-wlm slurm-client munge"
        )
    with network() as net, ExitStack() as stack:
        folder = Path(mkdtemp(prefix="el-slurm-", dir="/tmp"))  # a socket's path is short
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        made = _prepared(folder, net)
        for command in _daemons(folder, net):
            stack.enter_context(_running(command, made.environment, folder))
        assert comes_true(made.is_idle), (folder / "slurmctld.log").read_text()
        try:
            yield made
        finally:
            subprocess.run(["scancel", "--user=root"], env=made.environment, check=False)
            comes_true(lambda: not made.asks("squeue", "--noheader"))


def _prepared(folder: Path, net: Network) -> Cluster:
    hosts = [net.host(name) for name in NODES]
    for name in ("state", *(f"spool-{host.name}" for host in hosts)):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    lines = [Path("/etc/hosts").read_text(), *(f"{host.address} {host.name}\n" for host in hosts)]
    (folder / "hosts").write_text("".join(lines))
    nodes = "\n".join(f"NodeName={host.name} NodeAddr={host.address} CPUs=2" for host in hosts)
    text = CONFIGURATION.format(here=os.uname().nodename, net=net.net, mine=MINE, folder=folder, nodes=nodes)
    (folder / "slurm.conf").write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return Cluster(folder, {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": path})


def _daemons(folder: Path, net: Network) -> Iterator[Sequence[str]]:
    files = {"key-file": "key", "socket": "sock", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    munge = [f"--{option}={folder}/munge.{name}" for option, name in files.items()]
    yield "munged", "--foreground", "--force", *munge
    yield "slurmctld", "-D", "-f", f"{folder}/slurm.conf"
    for host in net.hosts.values():
        yield _slurmd(folder, host)


def _slurmd(folder: Path, host: Host) -> Sequence[str]:
    """Return slurmd's command under that host's name. (`ip netns exec` would hide the control groups from it.)"""
    slurmd = f"slurmd -N {host.name} -D -f {folder}/slurm.conf"
    shell = f"mount --bind {folder}/hosts /etc/hosts && hostname {host.name} && exec {slurmd}"
    return "nsenter", f"--net=/run/netns/{host.namespace}", "unshare", "--uts", "--mount", "sh", "-c", shell


@contextmanager
def _running(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[None]:
    with (folder / "daemons").open("ab") as said:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        if command[0] == "munged":
            assert comes_true((folder / "munge.sock").exists)
        yield
    finally:
        process.terminate()
        process.wait()
