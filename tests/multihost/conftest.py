"""Clusters for the tests, and what of them runs where.

`make test` runs a part of these tests, for a minute or two. `make test-multihost` sets WEFT_MULTIHOST=all:
all tests run, those of faults WEFT_FAULT_ROUNDS times with different seeds, and a skip is an error.
test_faults.py says how several pytest processes share the seeds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster as cluster_module
import launchers
import pytest
import slurm
from cluster import Cluster

ALL = os.environ.get("WEFT_MULTIHOST") == "all"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ALL:
        return
    later = [item for item in items if item.get_closest_marker("multihost_all")]
    if later:
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if item not in later]


def skip(why: str) -> None:
    if ALL:
        pytest.fail(f"`make test-multihost` was asked for, but {why}", pytrace=False)
    pytest.skip(f"NOT TESTED: {why}")


@pytest.fixture(scope="session")
def need_cluster() -> None:
    if why := cluster_module.missing():
        skip(f"test hosts cannot be made here: {why}")


@pytest.fixture(scope="session")
def need_slurm(need_cluster: None) -> None:
    if why := slurm.missing():
        skip(why)


@pytest.fixture
def two_hosts(need_cluster: None) -> Iterator[Cluster]:
    with Cluster(2) as cluster:
        yield cluster


Launch = Callable[..., list[str]]


@pytest.fixture(scope="module", params=["weft_run", "prrte", "hydra", "slurm-pmix", "slurm-pmi2"])
def launched(request: pytest.FixtureRequest, need_cluster: None) -> Iterator[tuple[Cluster, Launch]]:
    """Two hosts, and launch(pes_per_host, program, environment=...), the command line of a job there."""
    name, _, mpi = request.param.partition("-")
    if name == "slurm":
        request.getfixturevalue("need_slurm")
    with Cluster(2, overlay=slurm.PACKAGES / "usr" if name == "slurm" else None) as cluster:
        if name == "slurm":
            controller = slurm.Slurm(cluster)
            controller.start()
            yield cluster, lambda *args, **options: controller.srun(*args, **options, mpi=mpi)
        else:
            yield cluster, lambda *args, **options: getattr(launchers, name)(cluster, *args, **options)


@pytest.fixture(scope="session")
def programs(build_folder: Path) -> Path:
    """The folder of bootstrap_probe, fault_probe and others; the heads of their sources say what they do."""
    return build_folder / "tests" / "multiproc"
