"""tools/run_clang_tidy.py finds in sources that are read together what it finds in each alone."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import run_clang_tidy  # noqa: E402  (the folder of the tools is no package)

SAME_NAME = "namespace { int value() { return 1; } }\n"
WITH_A_NULL = "int* pointer() { return 0; }\n"


@pytest.fixture
def tidy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """tidy(text of each source) -> (exit code, what it has printed)."""
    shutil.copy(TOOLS.parent / ".clang-tidy", tmp_path)
    monkeypatch.setattr(run_clang_tidy, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()

    def run(*texts: str, options: str = "") -> tuple[int, str]:
        entries = []
        for i, text in enumerate(texts):
            file = tmp_path / "src" / f"source_{i}.cpp"
            file.write_text(text)
            command = f"g++ -std=c++20 {options} -o source_{i}.o -c {file}"
            entries.append({"directory": str(tmp_path), "file": str(file), "command": command})
        (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
        status = run_clang_tidy.main([str(tmp_path)])
        return status, capsys.readouterr().out

    return run


def test_sources_without_findings(tidy) -> None:
    status, printed = tidy("int first() { return 1; }\n", "int second() { return 2; }\n")
    assert (status, "2 files, 0 with findings" in printed) == (0, True), printed


def test_a_finding_is_told_for_its_own_source(tidy) -> None:
    status, printed = tidy("int first() { return 1; }\n", WITH_A_NULL, "int third() { return 3; }\n")
    assert status == 1
    assert "3 files, 1 with findings" in printed
    assert "--- src/source_1.cpp" in printed
    assert "modernize-use-nullptr" in printed


def test_sources_that_cannot_be_read_together_are_read_alone(tidy) -> None:
    status, printed = tidy(SAME_NAME, SAME_NAME)
    assert "2 files, 0 with findings" in printed
    assert status == 0


def test_sources_with_other_options_are_read_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_clang_tidy, "ROOT", tmp_path)
    files = [tmp_path / "src" / name for name in ("a.cpp", "b.cpp", "c.cpp")]
    commands = {files[0]: ("", "-O1"), files[1]: ("", "-O2"), files[2]: ("", "-O1")}
    assert run_clang_tidy.batches_of(files, commands) == [[files[0], files[2]], [files[1]]]


def test_a_missing_include_is_found_in_spite_of_precompiled_headers(tidy, tmp_path) -> None:
    (tmp_path / "cmake_pch.hxx").write_text("#include <vector>\n")
    options = f"-Winvalid-pch -include {tmp_path}/cmake_pch.hxx"
    status, printed = tidy("std::vector<int> numbers();\n", options=options)
    assert status == 1
    assert "1 files, 1 with findings" in printed


def test_a_file_that_is_not_compiled_is_named(tidy, tmp_path, capsys) -> None:
    tidy("int first() { return 1; }\n")
    assert run_clang_tidy.main([str(tmp_path), str(tmp_path / "other.cpp")]) == 1
    assert "does not name" in capsys.readouterr().err


def test_of_what_has_changed_sources_and_one_user_of_each_header_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_clang_tidy, "ROOT", tmp_path)
    texts = {
        "src/a.cpp": '#include "a.h"\n',
        "src/b.cpp": '#include "a.h"\n#include "inner/lone.h"\n',
        "src/c.cpp": '#include "inner/lone.h"\n',
        "src/d.cpp": "int d() { return 4; }\n",
        # Another header with the name of one that is read.
        "python/src/future.cpp": '#include "await/future.h"\n',
        "src/e.cpp": '#include "weft/runtime/outer.h"\n',
        "src/a.h": "",
        "src/inner/lone.h": "",
        "src/unused.h": "",
        "python/src/await/future.h": "",
        "include/weft/runtime/future.h": "",
        "include/weft/runtime/outer.h": '#include "weft/runtime/future.h"\n',
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    sources = [tmp_path / name for name in texts if name.endswith(".cpp")]
    for changed, read in {
        ("src/a.h",): ["src/a.cpp"],
        ("src/inner/lone.h",): ["src/b.cpp"],
        ("src/d.cpp", "src/a.h", "docs/page.md"): ["src/a.cpp", "src/d.cpp"],
        ("include/weft/runtime/future.h",): ["src/e.cpp"],  # through another header
        ("python/src/await/future.h",): ["python/src/future.cpp"],
    }.items():
        found = run_clang_tidy.sources_to_read({tmp_path / name for name in changed}, sources)
        assert found == [tmp_path / name for name in read], changed
        assert capsys.readouterr().out == ""
    assert run_clang_tidy.sources_to_read({tmp_path / "src/unused.h"}, sources) == []
    assert "no source includes src/unused.h" in capsys.readouterr().out


def test_files_that_are_named_are_read_alone(tidy, tmp_path, capsys) -> None:
    tidy("#include <vector>\nint first() { return 1; }\n", "std::vector<int> second();\n")
    names = [str(tmp_path / "src" / f"source_{i}.cpp") for i in range(2)]
    assert run_clang_tidy.main([str(tmp_path), *names]) == 1, "a missing #include was not found"
    assert "--- src/source_1.cpp" in capsys.readouterr().out
