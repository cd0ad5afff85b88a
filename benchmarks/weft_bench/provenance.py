"""Where and when a figure was measured: the git, host and date fields of a record."""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from weft_bench.gpus import describe_gpus
from weft_bench.programs import checkout


@dataclasses.dataclass(frozen=True)
class Provenance:
    """The commit (or installed version), a description of the machine, and the time (ISO 8601, UTC)."""

    git: str
    host: str
    date: str


def provenance() -> Provenance:
    """Of this process, now."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return Provenance(git=source_version(), host=host_description(), date=now.strftime("%Y-%m-%dT%H:%M:%SZ"))


def source_version() -> str:
    """The commit of the checkout in use, "-dirty" added when tracked files differ from it.

    Outside a checkout the version of the installed package, "unknown" when there is none either.
    """
    folder = checkout()
    if folder is not None and (commit := _git(folder, "rev-parse", "--short=12", "HEAD")):
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
        return f"{commit}-dirty" if changed else commit
    try:
        return f"weft {metadata.version('weft')}"
    except metadata.PackageNotFoundError:
        return "unknown"


def host_description() -> str:
    """Processor, usable cores, memory, GPUs and kernel: enough to compare figures, no host name."""
    cores = len(os.sched_getaffinity(0))
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    gpus = f", {gpus}" if (gpus := describe_gpus()) else ""
    return f"{_processor()}, {cores} cores, {memory_gib:.0f} GiB{gpus}, {system}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _git(folder: Path, *arguments: str) -> str:
    """What git prints, "" when there is no git or it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
