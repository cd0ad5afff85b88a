"""Command lines of the launchers of clusters, for the hosts of a Cluster."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import Cluster

BIN = Path(sys.executable).parent
MPIEXEC = BIN / "mpiexec"
HYDRA = BIN.parent / "mpich" / "bin" / "mpiexec.hydra"


def agent_script(cluster: Cluster) -> Path:
    """What PRRTE and Hydra call instead of ssh."""
    script = cluster.folder / "agent"
    if not script.exists():
        script.write_text(f'#!/bin/sh\nexec {shlex.join(cluster.agent)} "$@"\n')
        script.chmod(0o755)
    return script


def prrte(
    cluster: Cluster,
    pes_per_host: int,
    program: Sequence[object],
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Open MPI's mpiexec, which is PRRTE; PEs are numbered host by host."""
    hosts = ",".join(f"{host.name}:{pes_per_host}" for host in cluster.hosts)
    exported = [part for name, value in (environment or {}).items() for part in ("-x", f"{name}={value}")]
    return [
        str(MPIEXEC), "--allow-run-as-root", "--host", hosts, "-n", str(pes_per_host * len(cluster.hosts)),
        "--map-by", f"ppr:{pes_per_host}:node", "--bind-to", "none",
        "--prtemca", "plm_ssh_agent", str(agent_script(cluster)), "--prtemca", "plm_ssh_no_tree_spawn", "1",
        *exported, *map(str, program),
    ]  # fmt: skip


def hydra(
    cluster: Cluster,
    pes_per_host: int,
    program: Sequence[object],
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """MPICH's mpiexec; it passes its own environment on. PEs are numbered host by host."""
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    return [
        "env", *settings, str(HYDRA), "-hosts", ",".join(host.name for host in cluster.hosts),
        "-ppn", str(pes_per_host), "-n", str(pes_per_host * len(cluster.hosts)),
        "-launcher", "ssh", "-launcher-exec", str(agent_script(cluster)),
        *map(str, program),
    ]  # fmt: skip


def weft_run(
    cluster: Cluster,
    pes_per_host: int,
    program: Sequence[object],
    environment: Mapping[str, str] | None = None,
    options: Sequence[object] = (),
) -> list[str]:
    """`weft run` on the first host; `options` come last, so that they count."""
    settings = {
        "WEFT_REMOTE_SHELL": str(agent_script(cluster)),
        "WEFT_TRUSTED_NETWORK": "1",
        **(environment or {}),
    }
    hosts = ",".join(f"{host.name}:{pes_per_host}" for host in cluster.hosts)
    return [
        "env", *(f"{name}={value}" for name, value in settings.items()),
        sys.executable, "-m", "weft", "run", "--hosts", hosts, "-n", str(pes_per_host * len(cluster.hosts)),
        *map(str, options), *map(str, program),
    ]  # fmt: skip


def with_errors_in(file: Path, program: Sequence[object]) -> list[str]:
    """A file keeps what srun may drop: the last lines of a failed task, if --kill-on-bad-exit ends others.

    srun of Slurm 22.05 dropped them in 61 of 100 jobs without Weft.
    """
    command = shlex.join(map(str, program))
    return ["sh", "-c", f"{command} 2>>{shlex.quote(str(file))}"]


def ready_pids(job: subprocess.Popen[str], num_pes: int) -> dict[int, int]:
    """Waits for the lines "ready PE PID" of fault_probe. The number of each PE's process, by PE."""
    pids: dict[int, int] = {}
    assert job.stdout is not None
    while len(pids) < num_pes:
        line = job.stdout.readline()
        assert line, f"the job ended before it was ready:\n{job.communicate()[1]}"
        if match := re.fullmatch(r"ready (\d+) (\d+)\n", line):
            pids[int(match[1])] = int(match[2])
    return pids
