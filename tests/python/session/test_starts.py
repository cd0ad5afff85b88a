"""The start of the other PEs: what is refused before it, what interrupts it, and what they are given."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import weft
from weft._session.others import OtherPes


class Shown(weft.Chare):
    def arguments(self):
        return sys.argv, sys.path


@pytest.fixture
def launchers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that this one starts meanwhile."""
    started: list[Any] = []

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    return started


@pytest.mark.parametrize("pes", [1, 2])
def test_a_job_in_a_job_is_refused_and_the_job_goes_on(launchers: list[Any], pes: int) -> None:
    async def main():
        for nested in (lambda: weft.run(main, pes=2), lambda: weft.session(pes=2)):
            with pytest.raises(weft.Error, match="inside a running job"):
                nested()
        return len(launchers), len(await weft.Group(Shown).arguments.call())

    assert weft.run(main, pes=pes) == (pes - 1, pes)


def test_a_job_beside_the_start_of_another_one_is_refused(
    launchers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, goes_on = threading.Event(), threading.Event()

    def wait(others: OtherPes) -> dict[str, str]:
        starts.set()
        goes_on.wait()
        raise weft.Error("it does not start")

    monkeypatch.setattr(OtherPes, "_first_line", wait)
    with concurrent.futures.ThreadPoolExecutor() as executor:
        first = executor.submit(weft.run, weft.num_pes, pes=2)
        starts.wait()
        with pytest.raises(weft.Error, match="another thread of this process runs or starts a job"):
            weft.run(weft.num_pes, pes=2)
        goes_on.set()
        with pytest.raises(weft.Error, match="it does not start"):
            first.result()
    assert len(launchers) == 1


def test_ctrl_c_while_the_other_pes_start_ends_them(
    launchers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(others: OtherPes) -> dict[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(OtherPes, "_first_line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        weft.run(weft.num_pes, pes=2)
    (launcher,) = launchers
    assert launcher.returncode is not None, "the launcher was not waited for"


def test_ctrl_c_while_a_session_starts_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(future: object, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(concurrent.futures.Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            weft.session(pes=2)
    assert "weft-pe-0" not in [thread.name for thread in threading.enumerate()]
    with weft.session(pes=1) as session:
        assert session.run(weft.num_pes) == 1


def test_the_other_pes_get_long_arguments_and_the_strings_of_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", "x" * 200_000])
    monkeypatch.setattr(sys, "path", [*sys.path, "/no/such/folder", Path("/no/path")])

    async def main():
        return (await weft.Group(Shown).arguments.call())[1]

    arguments, path = weft.run(main, pes=2)
    assert arguments == sys.argv
    assert path[-1] == "/no/such/folder"


def test_an_environment_that_is_too_large_is_an_error_of_weft(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOO_LARGE", "x" * (1 << 18))
    with pytest.raises(weft.Error, match=r"the other PEs could not be started: .*Argument list too long"):
        weft.run(weft.num_pes, pes=2)


COPIES = [
    (
        {"MASTER_ADDR": "a", "MASTER_PORT": "1", "RANK": "0", "WORLD_SIZE": "2"},
        "torchrun, or a launcher like it",
    ),
    ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}, "a launcher started 2 processes"),
    ({"WEFT_BOOTSTRAP": "/nowhere", "WEFT_NUM_PES": "x"}, "WEFT_NUM_PES"),
    ({"WEFT_BOOTSTRAP": "singelton"}, "WEFT_BOOTSTRAP is 'singelton'"),
]


@pytest.mark.parametrize(("environment", "words"), COPIES)
def test_an_environment_in_which_no_job_starts_starts_no_pes(
    launchers: list[Any], monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], words: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for start in (lambda: weft.run(weft.num_pes, pes=2), lambda: weft.session(pes=2)):
        with pytest.raises(weft.Error, match=words):
            start()
    assert launchers == []


def test_copies_beside_the_first_end_without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    with pytest.raises(SystemExit) as caught:
        weft.run(weft.num_pes, pes=2)
    assert caught.value.code == 1
