"""MPI programs on hosts that lack memory, and beside settings of UCX that others may have written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("num_pes", [None, 2])
def test_settings_that_others_may_have_written_are_not_read(
    run_mpi, tmp_path: Path, num_pes: int | None
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept", encoding="ascii")
    (tmp_path / "ucx.conf").write_text(f"UCX_LOG_FILE={kept}\n", encoding="ascii")
    (tmp_path / "ucx.conf").chmod(0o666)
    done = run_mpi("session", num_pes)
    assert done.returncode == 0, done.stderr
    assert kept.read_text(encoding="ascii") == "kept"
    assert done.stderr.count("UCX has not read ./ucx.conf") == 1


@pytest.mark.parametrize("log_level", [None, "fatal"])
def test_a_file_system_that_others_fill_ends_the_job_with_a_sentence(
    mpi_program, monkeypatch, log_level: str | None
) -> None:
    monkeypatch.delenv("UCX_LOG_LEVEL", raising=False)
    if log_level is not None:
        monkeypatch.setenv("UCX_LOG_LEVEL", log_level)
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = 'mount -t tmpfs -o "$0" shm /dev/shm && exec "$@"'
    unshare = ["unshare", *own_user, "--mount", "sh", "-c", mount, "size=20m"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT TESTED: this user may not mount a file system on /dev/shm")
    done = subprocess.run(
        [*unshare, sys.executable, "-m", "weft", "run", "-n", "2", mpi_program("full_shared_memory")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "weft: PE 1 ends: UCX cannot add shared memory for messages that wait" in done.stderr
    assert " of 20.0 MiB are free in /dev/shm/" in done.stderr
