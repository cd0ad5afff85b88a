"""Public classes and functions name their public module: pickles and checkpoints name no private files."""

from __future__ import annotations

import importlib
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Callable

import pytest

PUBLIC_MODULES = ("weft", "weft.emulated", "weft.load_balancing", "weft.pgas")


def names() -> list[tuple[str, str]]:
    return [(module, name) for module in PUBLIC_MODULES for name in importlib.import_module(module).__all__]


def own_names() -> list[tuple[str, str]]:
    """Those that are no modules, nor another name of a type."""
    others = [*PUBLIC_MODULES, "weft.load_balancing.Strategy"]
    return [(module, name) for module, name in names() if f"{module}.{name}" not in others]


@pytest.mark.parametrize(("module", "name"), own_names())
def test_a_public_name_is_pickled_by_its_public_module(module: str, name: str) -> None:
    found = getattr(importlib.import_module(module), name)
    assert (found.__module__, found.__qualname__) == (module, name)
    assert pickle.loads(pickle.dumps(found)) is found


@pytest.mark.parametrize(("module", "name"), names())
def test_methods_name_the_module_of_their_class(module: str, name: str) -> None:
    found = getattr(importlib.import_module(module), name)
    members = vars(found).values() if isinstance(found, type) else ()
    modules = {getattr(member, "__module__", None) or module for member in members}
    assert not [one for one in modules if one.startswith("weft._")]


def test_objects_of_public_classes_are_pickled_by_public_modules() -> None:
    import weft

    for one in (
        weft.Device("cuda", 1),
        weft.TransportUse("put", "host", "staged", 1, 8),
        weft.PeerTransports((1, 2), "tcp"),
        weft.Reducer.sum,
        weft.Error("a failure"),
    ):
        pickled = pickle.dumps(one)
        strings = [value for _, value, _ in pickletools.genops(pickled) if isinstance(value, str)]
        assert not [value for value in strings if value.startswith("weft._")]
        again = pickle.loads(pickled)
        assert type(again) is type(one) and str(again) == str(one)


def test_a_pickle_is_read_by_a_process_that_has_imported_nothing() -> None:
    import weft

    read = f"import pickle; print(pickle.loads({pickle.dumps(weft.Device('cuda', 1))!r}))"
    assert subprocess.check_output([sys.executable, "-c", read], text=True) == "cuda:1\n"


def test_objects_of_a_job_are_pickled_by_public_modules(expect_success: Callable[..., str]) -> None:
    assert "all checked" in expect_success(2, "public_pickles.py")
