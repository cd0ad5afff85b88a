"""tools/make_wheels.py: which files it leaves in dist/. pip and auditwheel are stand-ins."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "make_wheels.py"


def folder_of(command: list[str]) -> Path:
    (folder,) = (Path(word.partition("=")[2]) for word in command if word.startswith("--wheel-dir="))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_wheels", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(command: list[str], **options: object) -> None:
        if "pip" in command:
            python = Path(command[command.index("--python") + 1]).name.removeprefix("python")
            tags = "cp312-abi3" if python in ("3.12", "3.13") else "cp310-cp310"
            (folder_of(command) / f"weft-1-{tags}-linux_x86_64.whl").write_text(python)
        else:
            raw = Path(command[-1])
            (folder_of(command) / raw.name.replace("linux_x86_64", module.PLATFORM)).write_bytes(
                raw.read_bytes()
            )

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(module, "version_of", lambda python: (3, int(python.rpartition(".")[2])))
    monkeypatch.setattr(module, "build_options", lambda version: [])
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "TREE", tmp_path / "tree")
    monkeypatch.setattr(module, "DIST", tmp_path / "dist")
    return module


def test_a_second_python_of_the_stable_abi_replaces_the_wheel_of_the_first(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "weft-0-cp310-cp310-any.whl").touch()
    monkeypatch.setattr(sys, "argv", ["make_wheels", "python3.10", "python3.12", "python3.13"])
    tool.main()
    names = {file.name: file.read_text() for file in (tmp_path / "dist").iterdir()}
    assert names == {
        f"weft-1-cp310-cp310-{tool.PLATFORM}.whl": "3.10",
        f"weft-1-cp312-abi3-{tool.PLATFORM}.whl": "3.13",
    }
    printed = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert printed == [
        f"dist/weft-1-{tags}-{tool.PLATFORM}.whl," for tags in ("cp310-cp310", "cp312-abi3", "cp312-abi3")
    ]
