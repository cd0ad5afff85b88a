"""What other users could do to a job: by its shared memory, and by settings of UCX in the current folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

SEGMENTS = Path("/proc/sysvipc/shm")

# Tries to get at the memory of the processes that its arguments name. Prints what it could open.
OTHER_USER = """\
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
pids = sys.argv[1:]
head, *rows = open("/proc/sysvipc/shm").read().splitlines()
for row in rows:
    segment = dict(zip(head.split(), row.split()))
    if segment["cpid"] in pids and libc.shmat(int(segment["shmid"]), None, 0) != ctypes.c_void_p(-1).value:
        print("segment", segment["shmid"])
def try_folder(folder):
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            os.close(os.open(f"{folder}/{name}", os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
            print("file", f"{folder}/{name}")
        except OSError:
            pass
for pid in pids:
    try_folder(f"/proc/{pid}/fd")
    try_folder(f"/proc/{pid}/map_files")
for name in os.listdir("/dev/shm"):
    if name.startswith("weft-segments-"):
        try_folder(f"/dev/shm/{name}")
"""


def system_v_segments(pids: Collection[int]) -> list[str]:
    """Those that these processes have made."""
    head, *rows = SEGMENTS.read_text(encoding="ascii").splitlines()
    made_by = head.split().index("cpid")
    return [row for row in rows if int(row.split()[made_by]) in pids]


def open_to_another_user(pids: Collection[int]) -> str:
    """What another user of the same group could open of these processes; nothing if this user cannot try."""
    if os.geteuid() != 0 or (setpriv := shutil.which("setpriv")) is None:
        return ""
    as_other = [setpriv, "--reuid", "65534", "--regid", str(os.getegid()), "--clear-groups"]
    python = os.path.realpath(sys.executable)  # a virtual environment may be closed to others
    command = [*as_other, python, "-I", "-c", OTHER_USER, *map(str, pids)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert tried.returncode == 0, tried.stderr
    return tried.stdout


# Weft's own choice, usual settings of sites, and one who asks for it.
@pytest.mark.parametrize(
    "tls", [None, "self,sm", "self,shm", "mm,self", "all", "self,sm,tcp", "^tcp", "self,sysv"]
)
def test_a_job_has_no_system_v_segments(start, fault_probe: Path, job_folder: Path, tls: str | None) -> None:
    environment = {**os.environ, "TMPDIR": str(job_folder), "WEFT_TRUSTED_NETWORK": "1"}
    environment.pop("UCX_TLS", None)
    if tls is not None:
        environment["UCX_TLS"] = tls
    expect_closed(start("-n", 2, fault_probe, "idle", env=environment))


def test_a_job_has_none_where_dev_shm_is_small(start_command, shm_of_its_own, fault_probe: Path) -> None:
    run = [sys.executable, "-m", "weft", "run", "-n", "2", str(fault_probe), "idle"]
    expect_closed(start_command([*shm_of_its_own("size=20m"), *run]))


def expect_closed(job) -> None:
    job.wait_ready(2)
    pids = list(job.pids.values())
    assert system_v_segments(pids) == [], "another user of the group can attach them"
    assert open_to_another_user(pids) == ""
    job.process.terminate()
    job.wait()


def test_another_user_was_tried() -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("NOT TESTED as another user: that takes root and setpriv")


# --- ./ucx.conf

SHOW_FOLDER = """\
import os, weft
async def main():
    print(os.getcwd())
weft.run(main)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of this user with a ucx.conf, which has UCX empty the file `kept` there."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    (folder / "kept").write_text("kept", encoding="ascii")
    (folder / "ucx.conf").write_text(f"UCX_LOG_FILE={folder}/kept\n", encoding="ascii")
    (folder / "ucx.conf").chmod(0o600)
    (folder / "show.py").write_text(SHOW_FOLDER, encoding="ascii")
    return folder


def command_of(language: str, fault_probe: Path) -> list[object]:
    return [fault_probe, "exit", 0] if language == "C++" else ["show.py"]


@pytest.mark.parametrize("language", ["C++", "Python"])
@pytest.mark.parametrize(
    ("file_mode", "folder_mode"), [(0o666, 0o700), (0o660, 0o700), (0o600, 0o777), (0o600, 0o770)]
)
def test_settings_that_others_may_have_written_are_not_read(
    run, fault_probe: Path, folder: Path, file_mode: int, folder_mode: int, language: str
) -> None:
    (folder / "ucx.conf").chmod(file_mode)
    folder.chmod(folder_mode)
    outcome = run("-n", 2, *command_of(language, fault_probe), cwd=folder)
    assert outcome.exit_code == 0, outcome.stderr
    assert (folder / "kept").read_text(encoding="ascii") == "kept"
    assert outcome.stderr.count("UCX has not read ./ucx.conf") == 1, outcome.stderr
    if language == "Python":
        assert outcome.stdout == f"{folder}\n", "the program is in another folder"


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: this user may not give a file to another one")
@pytest.mark.parametrize("folder_mode", [0o700, 0o1777])
def test_settings_of_another_user_are_not_read(
    run, fault_probe: Path, folder: Path, folder_mode: int
) -> None:
    folder.chmod(folder_mode)
    os.chown(folder / "ucx.conf", 65534, -1)
    outcome = run("-n", 2, fault_probe, "exit", 0, cwd=folder)
    assert outcome.exit_code == 0, outcome.stderr
    assert (folder / "kept").read_text(encoding="ascii") == "kept"
    assert outcome.stderr.count("UCX has not read ./ucx.conf") == 1, outcome.stderr


@pytest.mark.parametrize("language", ["C++", "Python"])
@pytest.mark.parametrize("folder_mode", [0o700, 0o755, 0o1777])
def test_settings_of_the_user_are_read(
    run, fault_probe: Path, folder: Path, folder_mode: int, language: str
) -> None:
    folder.chmod(folder_mode)
    outcome = run("-n", 2, *command_of(language, fault_probe), cwd=folder)
    assert outcome.exit_code == 0, outcome.stderr
    assert (folder / "kept").read_text(encoding="ascii") != "kept"
    assert "ucx.conf" not in outcome.stderr


def test_nothing_is_said_where_there_are_none(run, fault_probe: Path, folder: Path) -> None:
    (folder / "ucx.conf").unlink()
    folder.chmod(0o777)
    outcome = run("-n", 2, fault_probe, "exit", 0, cwd=folder)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
