"""The README's programs are real: the Python ones run as they stand, the C++ one is an example's text."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def code_blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def output_of(tmp_path: Path, program: str, num_pes: int) -> str:
    script = tmp_path / "program.py"
    script.write_text(program)
    command = [sys.executable, str(script)]
    if num_pes > 1:
        command = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("num_pes", [1, 2, 4])
def test_first_program_runs(tmp_path: Path, num_pes: int) -> None:
    ring, _ = code_blocks("python")
    last_pe = 4 * num_pes // 8  # element 4 of 8 in the block map
    assert output_of(tmp_path, ring, num_pes) == (
        f"the token ended at chare 4 on PE {last_pe}\nsums of squares: {[140] * 8}\n"
    )


@pytest.mark.parametrize("num_pes", [1, 2])
def test_device_program_runs(tmp_path: Path, num_pes: int) -> None:
    _, devices = code_blocks("python")
    assert output_of(tmp_path, devices, num_pes) == (
        f"from 0 on PE {num_pes - 1}: [2.0, 2.0, 2.0, 2.0]\nfrom 1 on PE 0: [1.0, 1.0, 1.0, 1.0]\n"
    )


def test_cpp_program_is_the_example() -> None:
    (program,) = code_blocks("cpp")
    assert program in (ROOT / "examples" / "02_ring" / "ring.cpp").read_text()
