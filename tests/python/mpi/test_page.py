"""The programs in docs/mpi.md do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WEFT = [sys.executable, "-m", "weft"]

# What surrounds the page's lines about memory from MPI_Alloc_mem.
AROUND_ALLOC_MEM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  MPI_Info info;
  double* field;
  double host[4] = {1, 2, 3, 4};
  MPI_Init(&argc, &argv);
  %s
  printf("%%g %%g %%g %%g\\n", host[0], host[1], host[2], host[3]);
  MPI_Finalize();
}
"""


def blocks_in_c() -> list[str]:
    return re.findall(r"```c\n(.*?)```", (ROOT / "docs" / "mpi.md").read_text(encoding="utf-8"), re.DOTALL)


def compile_and_run(program: str, ranks: int, folder: Path) -> str:
    (folder / "program.c").write_text(program)
    subprocess.run([*WEFT, "mpicc", "program.c", "-o", "program"], cwd=folder, check=True, timeout=60)
    result = subprocess.run(
        [*WEFT, "run", "-n", str(ranks), "./program"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout


def test_the_program_of_the_page_runs(tmp_path):
    (program,) = (block for block in blocks_in_c() if "main(" in block)
    assert compile_and_run(program, 4, tmp_path) == "4 ranks, sum 6\n"


def test_the_lines_about_device_memory_run(tmp_path):
    (lines,) = (block for block in blocks_in_c() if "MPI_Alloc_mem" in block)
    assert compile_and_run(AROUND_ALLOC_MEM % lines, 2, tmp_path) == "2 4 6 8\n" * 2
