"""tools/setup on machines where things are missing: no machine is changed, apt-get is a stand-in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What every Debian has; no compiler, no Python, no apt-get.
ESSENTIAL = ["bash", "env", "cat", "sed", "cut", "dirname", "sha256sum", "grep", "touch", "rm"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with a checkout's tools/ and a bin/ that holds the essential commands alone."""
    (tmp_path / "tools").mkdir()
    for name in ("setup", "requirements-dev.txt"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools" / name)
    (tmp_path / "bin").mkdir()
    for name in ESSENTIAL:
        found = shutil.which(name)
        assert found, name
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def add_command(machine: Path, name: str, script: str) -> None:
    path = machine / "bin" / name
    path.write_text(f"#!{shutil.which('bash')}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def setup(machine: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [machine / "tools" / "setup"],
        env={"PATH": str(machine / "bin"), "HOME": str(machine)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


ALL_PACKAGES = "g++ libgtest-dev libfmt-dev libboost-context-dev make git python3 python3-dev python3-venv"


def test_without_apt_it_says_what_to_install(machine: Path) -> None:
    done = setup(machine)
    assert done.returncode == 1
    assert f"could not be installed from here: {ALL_PACKAGES}" in done.stderr
    assert f"apt-get install -y {ALL_PACKAGES}" in done.stderr
    assert not (machine / ".venv").exists()


def test_a_user_without_rights_gets_the_list_and_apt_is_not_called(machine: Path) -> None:
    add_command(machine, "apt-get", f"echo called >>{machine}/apt-calls")
    add_command(machine, "id", "echo 1000")
    add_command(machine, "sudo", "exit 1")
    done = setup(machine)
    assert done.returncode == 1
    assert ALL_PACKAGES in done.stderr
    assert not (machine / "apt-calls").exists()


def test_with_rights_it_installs_and_after_a_failure_refreshes_the_lists(machine: Path) -> None:
    add_command(machine, "apt-get", f'echo "$@" >>{machine}/apt-calls; exit 100')
    add_command(machine, "id", "echo 0")
    done = setup(machine)
    assert done.returncode == 1
    calls = (machine / "apt-calls").read_text(encoding="utf-8").splitlines()
    assert [call.split()[1] for call in calls] == ["install", "update", "install"]
    assert calls[0].endswith(ALL_PACKAGES)


def test_with_passwordless_sudo_it_installs_through_it(machine: Path) -> None:
    add_command(machine, "apt-get", f'echo "$@" >>{machine}/apt-calls; exit 100')
    add_command(machine, "id", "echo 1000")
    add_command(machine, "sudo", '[ "$1" = -n ] && shift && "$@"')
    setup(machine)
    assert (machine / "apt-calls").read_text(encoding="utf-8").startswith("-q install -y")


def test_an_old_compiler_of_the_distribution_is_passed_over(machine: Path) -> None:
    add_command(machine, "g++", 'echo "#define __GNUC__ 11"')
    add_command(machine, "apt-cache", 'echo "  Candidate: 4:11.2.0-1ubuntu1"')
    done = setup(machine)
    assert "could not be installed from here: g++-12 libgtest-dev" in done.stderr
