"""A PE that is killed while it makes a segment of shared memory: the launcher removes that one only."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def somebody_elses() -> Iterator[Path]:
    """A POSIX segment of this process, which looks as if UCX had left it behind."""
    path = SHARED_MEMORY / f"ucx_shm_posix_{os.getpid():x}"
    path.write_bytes(bytes(4096))
    yield path
    path.unlink()


@pytest.fixture
def noting(tmp_path: Path) -> tuple[list[str], Path]:
    """A wrapper for a PE that notes its folder for POSIX segments in a file, and that file."""
    note = tmp_path / "folder"
    return ["sh", "-c", f'echo "$UCX_POSIX_DIR" > {note}; exec "$@"', "sh"], note


def test_a_segment_in_the_making_is_removed(
    start, fault_probe: Path, build_folder: Path, noting: tuple[list[str], Path], somebody_elses: Path
) -> None:
    library = build_folder / "tests" / "multiproc" / "libdie_in_shared_memory.so"
    assert library.exists(), f"{library} is not built"
    wrapper, note = noting
    outcome = start("-n", 1, *wrapper, "env", f"LD_PRELOAD={library}", fault_probe, "idle").wait()
    assert outcome.exit_code == 128 + signal.SIGKILL, outcome.stderr
    assert re.search(r"PE 0 \(pid (\d+)\) was killed", outcome.stderr)
    folder = note.read_text(encoding="utf-8").strip()
    assert folder.startswith(f"{SHARED_MEMORY}/weft-segments-"), "its segments can be anybody's"
    assert not Path(folder).exists(), "a POSIX segment was left behind"
    assert somebody_elses.exists(), "not the launcher's to remove"


def test_the_folder_of_a_killed_launcher_is_removed_by_the_next(
    start, run, probe: Path, noting: tuple[list[str], Path]
) -> None:
    wrapper, note = noting
    jobs, folders = [], []
    for _ in range(2):
        jobs.append(start("-n", 1, *wrapper, probe, 0, "0:start:ready", "0:finish:idle"))
        jobs[-1].wait_ready(1)
        folders.append(Path(note.read_text(encoding="utf-8").strip()))
    killed, living = jobs
    killed.process.kill()
    killed.process.wait()
    assert run("-n", 1, probe, 0).exit_code == 0
    assert not folders[0].exists(), "left behind"
    assert folders[1].exists(), "the folder of a job that runs was removed"
    living.process.terminate()
    living.wait()
    assert not folders[1].exists()


def test_the_socket_of_a_launcher_that_was_killed_at_the_start_is_removed_by_the_next(
    start, run, probe: Path, job_folder: Path
) -> None:
    jobs = []
    for _ in range(2):
        # PE 1 does not join, so the socket stays.
        jobs.append(start("-n", 2, probe, 0, "*:start:ready", "1:start:idle", "0:finish:idle"))
        jobs[-1].wait_ready(2)
    killed, living = jobs
    assert len(list(job_folder.iterdir())) == 2
    killed.process.kill()
    killed.process.wait()
    assert run("-n", 1, probe, 0).exit_code == 0
    left = set(job_folder.iterdir())
    assert len(left) == 1, "the socket of the killed launcher is left, or that of the other one is not"
    living.process.terminate()
    living.wait()
    assert not left.pop().exists()


def test_an_inherited_folder_of_a_launcher_is_not_used(run, noting: tuple[list[str], Path]) -> None:
    wrapper, note = noting
    for given, is_kept in ((f"{SHARED_MEMORY}/weft-segments-gone", False), (str(note.parent), True)):
        outcome = run("-n", 1, *wrapper, "true", env={**os.environ, "UCX_POSIX_DIR": given})
        assert outcome.exit_code == 0, outcome.stderr
        used = note.read_text(encoding="utf-8").strip()
        assert (used == given) == is_kept
        assert is_kept or used.startswith(f"{SHARED_MEMORY}/weft-segments-")
