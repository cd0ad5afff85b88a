"""weft.__version__."""

from __future__ import annotations

import importlib.metadata

import pytest

import weft


def test_is_that_of_the_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"weft": "1.2.3"}.__getitem__)
    assert weft.__version__ == "1.2.3"


def test_without_an_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_found(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_found)
    assert weft.__version__ == "0+unknown"
