"""The program in docs/mpi.md does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_program_of_the_page_runs(tmp_path):
    page = (ROOT / "docs" / "mpi.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    (tmp_path / "sum.c").write_text(program)
    weft = [sys.executable, "-m", "weft"]
    subprocess.run([*weft, "mpicc", "sum.c", "-o", "sum"], cwd=tmp_path, check=True, timeout=60)
    result = subprocess.run(
        [*weft, "run", "-n", "4", "./sum"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stderr == ""
    assert result.stdout == "4 ranks, sum 6\n"
    assert result.returncode == 0
