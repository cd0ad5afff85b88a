"""Slurm on the hosts of a Cluster: munged and slurmd on each, slurmctld on the first.

The packages are unpacked, not installed, in .venv/slurm by tools/setup. They are in /usr on the hosts only.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import Cluster, Host, wait_until

PACKAGES = Path(__file__).resolve().parents[2] / ".venv" / "slurm"

CONFIGURATION = """\
ClusterName=weft
SlurmctldHost={first}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
TmpFS={local}
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
SchedulerParameters=sched_min_interval=10000
KillWait=5
NodeName={nodes} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing() -> str:
    """Why there is no Slurm here; empty if there is."""
    if not (PACKAGES / "usr" / "sbin" / "slurmctld").exists():
        return "Slurm's packages are not there: `make setup` fetches them with apt"
    if os.getuid() != 0:
        return "munged and slurmd run as root only"
    return ""


class Slurm:
    """The daemons end with the hosts."""

    def __init__(self, cluster: Cluster, cpus: int = 8) -> None:
        self.cluster = cluster
        self.folder = cluster.folder / "slurm"
        self.folder.mkdir()
        self._daemons: dict[str, subprocess.Popen[str]] = {}  # by their logs
        os.chmod(cluster.folder, 0o755)
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(
            CONFIGURATION.format(
                first=cluster.hosts[0].name,
                folder=self.folder,
                local=cluster.folder / "local",
                nodes=",".join(host.name for host in cluster.hosts),
                cpus=cpus,
            )
        )
        # Nothing here uses control groups. Slurm would look for their file system to find out their version.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}

    def start(self) -> None:
        """Waits until all hosts are idle. Raises RuntimeError, with what it printed, if a daemon ends."""
        for host in self.cluster.hosts:
            self._daemon(
                host, "munged", "--foreground", "--force", "--num-threads=1",
                f"--key-file={self.folder}/munge.key",
                "--socket=/run/munge.socket", "--pid-file=/run/munged.pid", "--log-file=/run/munged.log",
                "--seed-file=/run/munged.seed",
            )  # fmt: skip
            wait_until(
                lambda host=host: host.run(["test", "-S", "/run/munge.socket"]).exit_code == 0, "munged"
            )
        self._daemon(self.cluster.hosts[0], "slurmctld", "-D")
        for host in self.cluster.hosts:
            self._daemon(host, "slurmd", "-D", "-N", host.name)
        wait_until(self._is_up, "the start of Slurm")

    def srun(
        self,
        pes_per_host: int,
        program: Sequence[object],
        mpi: str = "pmix",
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        hosts = len(self.cluster.hosts)
        settings = [f"{name}={value}" for name, value in (environment or {}).items()]
        return [
            "env", f"SLURM_CONF={self.configuration}", *settings,
            "srun", f"--mpi={mpi}", "-N", str(hosts), "-n", str(hosts * pes_per_host),
            f"--ntasks-per-node={pes_per_host}", "-m", "block", "--kill-on-bad-exit=1",
            *options, *map(str, program),
        ]  # fmt: skip

    def _daemon(self, host: Host, program: str, *arguments: str) -> None:
        log = (self.folder / f"{program}.{host.name}.out").open("w")
        process = host.start(
            [f"/usr/sbin/{program}", *arguments], env=self.environment, stdout=log, stderr=log
        )
        self._daemons[log.name] = process

    def _is_up(self) -> bool:
        for log, process in self._daemons.items():
            if process.poll() is not None:
                raise RuntimeError(f"a daemon of Slurm ended:\n{Path(log).read_text()}")
        seen = self.cluster.hosts[0].run(["sinfo", "-h", "-N", "-o", "%N %t"], env=self.environment).stdout
        return seen.split() == [word for host in self.cluster.hosts for word in (host.name, "idle")]
