"""The pytest plugin, in pytest runs of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = """\
import os
import pytest
import weft
from helpers import Shared

class Mine(weft.Chare):
    def where(self): return weft.my_pe(), os.getpid()

async def where():
    return await weft.Group(Mine).where.call()

def test_default(weft_job):
    places = weft_job(where)
    assert [pe for pe, _ in places] == [0, 1]
    assert len({process for _, process in places}) == 2

@pytest.mark.weft(pes=3)
def test_mark(weft_job):
    assert len(weft_job(where)) == 3

def test_several(weft_job):
    async def main():
        return await weft.Array(Shared, 2).double.call(21)
    for _ in range(2):
        assert weft_job(main, pes=2) == [42, 42]
    assert weft_job(weft.num_pes, pes=2) == 2

@pytest.fixture
def session():
    if "WEFT_BOOTSTRAP" in os.environ:
        pytest.skip("a session is for a process without a launcher")
    with weft.session(pes=2) as opened:
        yield opened

def test_in_session(session, weft_job):
    assert weft_job(lambda: weft.Group(Mine).where.call()) == weft_job(where)

def test_raises(weft_job):
    async def main():
        raise ValueError("boom")
    with pytest.raises(ValueError, match="boom"):
        weft_job(main)

def test_fails(weft_job):
    async def main():
        assert await weft.Array(Mine, 1)[0].where.call() == "nowhere"
    weft_job(main)
"""

HELPERS = """\
import weft
class Shared(weft.Chare):
    def double(self, value): return 2 * value
"""


@pytest.fixture
def options(plugin_options: list[str], tmp_path: Path) -> list[str]:
    """The options that run pytest on a folder with tests."""
    (tmp_path / "test_jobs.py").write_text(TESTS)
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --strict-markers\n")
    return ["-m", "pytest", *plugin_options, "-p", "no:cacheprovider"]


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_jobs_of_tests(options: list[str], run_python, mode: str) -> None:
    ended = run_python(*options, f"--import-mode={mode}")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "5 passed" in ended.stdout
    assert "1 failed" in ended.stdout
    assert "AssertionError: assert (" in ended.stdout, "pytest explains an assertion in main"


def test_a_launch_of_pytest_runs_each_test_on_all_pes(options: list[str], run_python) -> None:
    ended = run_python("-m", "weft", "run", "-n", "2", *options, "-rs")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert ended.stdout.count("test session starts") == 1
    assert "1 failed, 3 passed, 2 skipped" in ended.stdout, ended.stdout
    assert "the test needs 3 PEs, and the launch has 2" in ended.stdout
    assert "PE 1: test_jobs.py::test_fails failed (call)" in ended.stderr


def test_the_example_of_the_page(plugin_options: list[str], run_python, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "notebooks.md").read_text(encoding="utf-8")
    blocks = [part.partition("```")[0] for part in page.split("```python\n")]
    (example,) = (block for block in blocks if "weft_job" in block)
    (tmp_path / "test_example.py").write_text(example)
    ended = run_python("-m", "pytest", *plugin_options, "-p", "no:cacheprovider", "--strict-markers")
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr


BROKEN_ON_PE_1 = """\
import os
if os.environ["WEFT_PE"] == "1":
    import a_module_that_pe_1_lacks
def test_nothing(): pass
"""

FAILS_INSIDE_PYTEST_ON_PE_1 = """\
import os
def pytest_collection():
    if os.environ["WEFT_PE"] == "1":
        raise KeyError("internal")
"""


def test_a_pe_that_fails_before_its_tests_says_so(
    plugin_options: list[str], run_python, tmp_path: Path
) -> None:
    (tmp_path / "test_broken.py").write_text(BROKEN_ON_PE_1)
    ended = run_python("-m", "weft", "run", "-n", "2", "-m", "pytest", *plugin_options)
    assert ended.returncode != 0
    assert "PE 1: test_broken.py failed (collection): E   ModuleNotFoundError" in ended.stderr
    # Not on PE 0: its end would end the job before PE 1 has said so.
    (tmp_path / "test_broken.py").unlink()
    (tmp_path / "conftest.py").write_text(FAILS_INSIDE_PYTEST_ON_PE_1)
    ended = run_python("-m", "weft", "run", "-n", "2", "-m", "pytest", *plugin_options)
    assert "PE 1: internal error of pytest: " in ended.stderr


def test_pytest_without_a_launch_of_weft_reports(
    plugin_options: list[str], run_python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass")
    monkeypatch.setenv("PMIX_RANK", "1")
    assert "1 passed" in run_python("-m", "pytest", *plugin_options).stdout
