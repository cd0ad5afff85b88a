"""The README's programs are real: the Python one runs as it stands, the C++ one is an example's text."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def code_blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("num_pes", [1, 2, 4])
def test_python_program_runs(tmp_path: Path, num_pes: int) -> None:
    (program,) = code_blocks("python")
    script = tmp_path / "ring.py"
    script.write_text(program)
    command = [sys.executable, str(script)]
    if num_pes > 1:
        command = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    last_pe = 4 * num_pes // 8  # element 4 of 8 in the block map
    assert done.stdout == (f"the token ended at chare 4 on PE {last_pe}\nsums of squares: {[140] * 8}\n"), (
        done.stderr
    )


def test_cpp_program_is_the_example() -> None:
    (program,) = code_blocks("cpp")
    assert program in (ROOT / "examples" / "02_ring" / "ring.cpp").read_text()
