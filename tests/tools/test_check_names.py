"""tools/check_names.py finds names that files define twice if they are compiled together, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_names.py"

DEFINITIONS = [
    "struct Block : Chare<Block> {\n};",
    "class Block;",
    "enum class Kind { kOne };",
    "using Names = std::vector<std::string>;",
    "constexpr int kLimit = 3;",
    "const std::chrono::milliseconds kLimit{200};",
    "Log log_of_run;",
    "[[noreturn]] void corrupt(const std::string& what) {\n}",
    "Status closed() { return {}; }",
    "template <class T>\nT twice(T value) {\n}",
]


def write(root: Path, declaration: str, **sources: str) -> None:
    folder = root / "tests" / "unit"
    folder.mkdir(parents=True)
    (root / "src").mkdir()
    (folder / "CMakeLists.txt").write_text(declaration, encoding="utf-8")
    for name, text in sources.items():
        (folder / f"{name}.cpp").write_text(text, encoding="utf-8")


def run(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)


def unnamed(text: str) -> str:
    return f"namespace weft {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace weft\n"


PROGRAM = "weft_add_test(\n  NAME x_test\n  SOURCES a.cpp b.cpp  # two\n  LIBS weft::job)\n"


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_a_name_in_two_files_is_found(tmp_path: Path, definition: str) -> None:
    write(tmp_path, PROGRAM, a=unnamed(definition), b=unnamed("int other = 0;\n" + definition))
    done = run(tmp_path)
    assert done.returncode == 1, done.stdout
    assert "is defined in several files that tests/unit compiles together; rename all but one" in done.stdout


def test_overloads_and_names_inside_of_definitions_are_no_problem(tmp_path: Path) -> None:
    write(
        tmp_path,
        PROGRAM,
        a=unnamed("int size(int x) {\n  const int kLocal = 1;\n}\nTEST(A, One) {\n}"),
        b=unnamed("int size(float x) {\n  const int kLocal = 1;\n}\nTEST(A, Two) {\n}"),
    )
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


def test_files_that_are_compiled_alone_may_share_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        PROGRAM + "set_source_files_properties(b.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n",
        a=unnamed("struct Block {\n};"),
        b=unnamed("struct Block {\n};"),
    )
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


def test_all_files_of_a_layer_are_compared(tmp_path: Path) -> None:
    write(tmp_path, "weft_add_test(NAME x_test SOURCES a.cpp)\n")
    for name in ("memory/kinds/cuda", "memory/kinds/host", "memory/other"):
        (tmp_path / "src" / name).mkdir(parents=True)
        (tmp_path / "src" / name / "a.cpp").write_text(unnamed("struct Block {\n};"), encoding="utf-8")
    (tmp_path / "src" / "memory" / "CMakeLists.txt").write_text(
        "weft_add_layer(NAME memory SOURCES ${sources})\n", encoding="utf-8"
    )
    (tmp_path / "src" / "memory" / "other" / "CMakeLists.txt").write_text(
        "weft_add_layer(NAME other SOURCES a.cpp)\n", encoding="utf-8"
    )
    done = run(tmp_path)
    assert done.returncode == 1
    assert "src/memory/kinds/cuda/a.cpp:4, src/memory/kinds/host/a.cpp:4: 'Block'" in done.stdout
    assert "other" not in done.stdout


def test_a_tree_without_such_targets_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "add_executable(x a.cpp)\n", a=unnamed("struct Block {\n};"))
    assert run(tmp_path).returncode == 1
