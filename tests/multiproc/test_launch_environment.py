"""What PEs find in their environment, and what they load: hash seed, the wait of UCX's hooks, asyncio."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = """\
import os, sys
seed, grace = os.environ["PYTHONHASHSEED"], os.environ["UCX_MEM_BISTRO_GRACE_DURATION"]
sys.stdout.write(f"{hash('key')} {seed} {grace}\\n")  # at once: the lines of PEs stay whole
"""

LOAD = """\
import os, sys
if sys.argv[1] == "beside":
    import threading
    wait = threading.Event()
    threading.Thread(target=wait.wait).start()
import weft
weft.Chare
print(os.environ["UCX_MEM_BISTRO_GRACE_DURATION"])
if sys.argv[1] == "beside":
    wait.set()
"""


@pytest.fixture
def clean() -> dict[str, str]:
    """This environment without what these tests look at."""
    ours = ("PYTHONHASHSEED", "UCX_MEM_BISTRO_GRACE_DURATION")
    return {name: value for name, value in os.environ.items() if name not in ours}


def test_equal_strings_have_equal_hashes_on_all_pes(
    run, clean: dict[str, str], job_folder: Path, tmp_path: Path
) -> None:
    program = tmp_path / "show.py"
    program.write_text(SHOW, encoding="utf-8")
    clean["TMPDIR"] = str(job_folder)
    jobs = [run("-n", 4, program, env=clean).stdout.splitlines() for _ in range(2)]
    assert [len(lines) for lines in jobs] == [4, 4]
    assert [len(set(lines)) for lines in jobs] == [1, 1], "hash('key') differs from PE to PE"
    assert jobs[0][0] != jobs[1][0], "two jobs have one seed"


def test_the_users_seed_stays(run, clean: dict[str, str], job_folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "show.py"
    program.write_text(SHOW, encoding="utf-8")
    seeded = {**clean, "PYTHONHASHSEED": "7"}
    plain = subprocess.run(
        [sys.executable, "-c", "print(hash('key'))"], env=seeded, capture_output=True, text=True, check=True
    ).stdout.strip()
    outcome = run("-n", 2, program, env={**seeded, "TMPDIR": str(job_folder)})
    assert set(outcome.stdout.splitlines()) == {f"{plain} 7 0"}


@pytest.mark.parametrize(("threads", "grace"), [("alone", "0"), ("beside", "5ms")])
@pytest.mark.parametrize("launched", [False, True])
def test_the_wait_of_a_python_pe(
    run, clean: dict[str, str], job_folder: Path, tmp_path: Path, threads: str, grace: str, launched: bool
) -> None:
    program = tmp_path / "load.py"
    program.write_text(LOAD, encoding="utf-8")
    if launched:
        stdout = run("-n", 1, program, threads, env={**clean, "TMPDIR": str(job_folder)}).stdout
    else:
        argv = [sys.executable, program, threads]
        stdout = subprocess.run(argv, env=clean, capture_output=True, text=True, check=True).stdout
    assert stdout == f"{grace}\n"


def test_a_pe_does_not_load_asyncio_unasked(clean: dict[str, str]) -> None:
    """It would be a fifth of the start of a PE."""
    loaded = "print('asyncio' in sys.modules)"
    code = f"import sys, weft; weft.Chare; {loaded}; weft.as_asyncio; {loaded}"
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
