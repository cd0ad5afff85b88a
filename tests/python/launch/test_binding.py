"""Which cores the PEs get, on hosts that the tests make up as folders like sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.launch.binding import binding_lines, shares
from weft.launch.topology import Core, cpu_list, cpu_list_text, processor_limit, usable_cores


def make_host(system: Path, nodes: int, cores_per_node: int, smt: int) -> int:
    """A host whose SMT siblings are numbered as on x86: all first siblings, then all second ones."""
    cores = nodes * cores_per_node
    for core in range(cores):
        siblings = ",".join(str(core + cores * one) for one in range(smt))
        for one in range(smt):
            topology = system / "cpu" / f"cpu{core + cores * one}" / "topology"
            topology.mkdir(parents=True)
            (topology / "core_cpus_list").write_text(f"{siblings}\n")
    for node in range(nodes):
        first = node * cores_per_node
        lists = [f"{first + cores * one}-{first + cores * one + cores_per_node - 1}" for one in range(smt)]
        (system / "node" / f"node{node}").mkdir(parents=True)
        (system / "node" / f"node{node}" / "cpulist").write_text(",".join(lists) + "\n")
    return cores * smt


def cores_of_host(tmp_path: Path, nodes: int, cores_per_node: int, smt: int) -> list[Core]:
    count = make_host(tmp_path, nodes, cores_per_node, smt)
    return usable_cores(set(range(count)), tmp_path)


def test_siblings_stay_together_and_nodes_come_one_after_the_other(tmp_path: Path) -> None:
    cores = cores_of_host(tmp_path, 2, 4, 2)
    assert [core.cpus for core in cores] == [(n, n + 8) for n in range(8)]
    assert [core.node for core in cores] == [0] * 4 + [1] * 4


def test_only_allowed_cpus_count(tmp_path: Path) -> None:
    make_host(tmp_path, 2, 4, 2)
    assert usable_cores({1, 9, 12, 6}, tmp_path) == [Core(0, (1, 9)), Core(1, (6,)), Core(1, (12,))]


def test_without_sysfs_each_cpu_is_a_core(tmp_path: Path) -> None:
    assert usable_cores({3, 5}, tmp_path) == [Core(0, (3,)), Core(0, (5,))]


@pytest.mark.parametrize("num_pes", [1, 2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize(("nodes", "per_node"), [(1, 8), (2, 4), (4, 2), (3, 3)])
def test_cores_are_divided_without_overlap(tmp_path: Path, nodes: int, per_node: int, num_pes: int) -> None:
    cores = cores_of_host(tmp_path, nodes, per_node, 2)
    parts = shares(cores, num_pes)
    given = [core for part in parts for core in part]
    assert sorted(given, key=cores.index) == cores  # each core once
    assert len(parts) == num_pes and all(parts)
    if num_pes >= nodes:
        assert all(len({core.node for core in part}) == 1 for part in parts), "a PE has cores of two nodes"


def test_pes_are_spread_over_nodes_by_their_cores(tmp_path: Path) -> None:
    cores = cores_of_host(tmp_path, 2, 6, 1)
    uneven = [core for core in cores if core.node == 0 or core.cpus[0] >= 10]  # 6 cores and 2
    nodes = [part[0].node for part in shares(uneven, 4)]
    assert nodes == [0, 0, 0, 1]


def test_more_pes_than_cores_share_them_evenly(tmp_path: Path) -> None:
    cores = cores_of_host(tmp_path, 1, 4, 2)
    parts = shares(cores, 10)
    sizes = [sum(part == [core] for part in parts) for core in cores]
    assert sum(sizes) == 10 and max(sizes) - min(sizes) <= 1
    assert binding_lines(parts)[-1] == "10 PEs have 4 cores: some share one"


def test_the_map_names_cpus_and_nodes(tmp_path: Path) -> None:
    assert binding_lines(shares(cores_of_host(tmp_path, 2, 2, 2), 2)) == [
        "PE 0 is bound to 2 cores: CPU 0-1,4-5, node 0",
        "PE 1 is bound to 2 cores: CPU 2-3,6-7, node 1",
    ]


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-3,8", {0, 1, 2, 3, 8}), ("5\n", {5}), ("", set()), ("x", set())]
)
def test_lists_of_cpus(text: str, numbers: set[int]) -> None:
    assert cpu_list(text) == numbers
    assert cpu_list(cpu_list_text(numbers)) == numbers


def test_the_tightest_limit_of_a_control_group_counts(tmp_path: Path) -> None:
    inner = tmp_path / "jobs" / "mine"
    inner.mkdir(parents=True)
    assert processor_limit("0::/jobs/mine\n", tmp_path) is None
    (tmp_path / "jobs" / "cpu.max").write_text("450000 100000\n")
    (inner / "cpu.max").write_text("max 100000\n")
    assert processor_limit("0::/jobs/mine\n", tmp_path) == 4
    (inner / "cpu.max").write_text("50000 100000\n")
    assert processor_limit("0::/jobs/mine\n", tmp_path) == 1


def test_the_limit_of_the_first_version_of_control_groups(tmp_path: Path) -> None:
    (tmp_path / "cpu" / "mine").mkdir(parents=True)
    (tmp_path / "cpu" / "mine" / "cpu.cfs_quota_us").write_text("300000\n")
    (tmp_path / "cpu" / "mine" / "cpu.cfs_period_us").write_text("100000\n")
    assert processor_limit("3:cpuset:/other\n4:cpu,cpuacct:/mine\n", tmp_path) == 3
    (tmp_path / "cpu" / "mine" / "cpu.cfs_quota_us").write_text("-1\n")
    assert processor_limit("4:cpu,cpuacct:/mine\n", tmp_path) is None
