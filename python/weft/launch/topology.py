"""The cores that this process may use, from sysfs: which CPUs each has and which NUMA node it belongs to.

A CPU is what the kernel schedules on; the CPUs of a core (SMT siblings) share its arithmetic units.
Sources: the Linux kernel's admin-guide/cputopology and ABI/stable/sysfs-devices-node, admin-guide/cgroup-v2.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

SYSTEM = Path("/sys/devices/system")
GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Core:
    """A core. `cpus` has those of its CPUs that may be used, in order."""

    node: int
    cpus: tuple[int, ...]


def usable_cores(allowed: set[int], system: Path = SYSTEM) -> list[Core]:
    """The cores of the CPUs in `allowed`, by NUMA node and then by CPU; each core is listed once.

    A host without this information in sysfs (some containers) counts as one node whose CPUs are cores.
    """
    nodes = _node_of_cpu(system)
    cores = {frozenset(_siblings(system, cpu) & allowed | {cpu}) for cpu in allowed}
    return sorted(
        (Core(nodes.get(min(cpus), 0), tuple(sorted(cpus))) for cpus in cores),
        key=lambda core: (core.node, core.cpus),
    )


def processor_limit(groups: str | None = None, root: Path = GROUPS) -> int | None:
    """How many CPUs the control group of this process may keep busy (`cpu.max`, rounded down), at least 1.

    None if there is no limit. `groups` is the text of /proc/self/cgroup.
    """
    text = _read(Path("/proc/self/cgroup")) if groups is None else groups
    limits = []
    for line in text.splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        unified = controllers == ""
        if not unified and "cpu" not in controllers.split(","):
            continue
        folder = (root if unified else root / "cpu") / path.lstrip("/")
        for group in (folder, *folder.parents):
            limits += _limit_of(group, unified)
            if group == root:
                break
    return min(limits, default=None)


def cpu_list(text: str) -> set[int]:
    """The numbers of a list such as "0-3,8"; empty if it is damaged."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        if (match := re.fullmatch(r"(\d+)(?:-(\d+))?", part)) is None:
            return numbers
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return numbers


def cpu_list_text(cpus: set[int]) -> str:
    """The reverse of cpu_list."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _siblings(system: Path, cpu: int) -> set[int]:
    folder = system / "cpu" / f"cpu{cpu}" / "topology"
    # The second is the name of the first in kernels before 5.3.
    return cpu_list(_read(folder / "core_cpus_list") or _read(folder / "thread_siblings_list"))


def _node_of_cpu(system: Path) -> dict[int, int]:
    nodes = {}
    try:
        names = os.listdir(system / "node")
    except OSError:
        return {}
    for name in names:
        if (match := re.fullmatch(r"node(\d+)", name)) is not None:
            nodes.update(dict.fromkeys(cpu_list(_read(system / "node" / name / "cpulist")), int(match[1])))
    return nodes


def _limit_of(group: Path, unified: bool) -> list[int]:
    if unified:
        words = _read(group / "cpu.max").split()
    else:
        words = [_read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if len(words) == 2 and all(re.fullmatch(r"[1-9]\d*", word) for word in words):
        return [max(1, int(words[0]) // int(words[1]))]
    return []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
