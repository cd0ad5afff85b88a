"""The memory of processes: of the host by the system, of GPUs by nvidia-smi."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft._top.memory import DeviceMemory, resident_bytes


def test_resident_memory() -> None:
    assert resident_bytes(os.getpid()) > 1 << 20
    assert resident_bytes(2**22 + 1) == 0, "no process has that number"


def ask(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> dict[int, int]:
    """What DeviceMemory knows after one question to such an nvidia-smi."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    memory = DeviceMemory()
    memory.current()  # asks, and does not wait
    assert memory._thread is not None
    memory._thread.join()
    return memory.current()


def test_a_process_on_two_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = "printf '17, 100\\n18, [N/A]\\n17, 20\\n'"
    assert ask(monkeypatch, tmp_path, script) == {17: 120 << 20}


def test_a_tool_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert ask(monkeypatch, tmp_path, "echo 'no devices'; exit 9") == {}


def test_no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert DeviceMemory().current() == {}
