"""tools/linted_commit.py: what has changed since a commit, and when that does not count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import linted_commit  # noqa: E402  (the folder of the tools is no package)


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a change")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose last commit is the remembered one, but for the file that names it."""
    git(tmp_path, "init", "-q")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "requirements-dev.txt").write_text("clang-tidy==1.0\npytest==1.0\n")
    for name in ("a.cpp", "b.cpp", ".clang-tidy"):
        (tmp_path / name).write_text("one\n")
    commit(tmp_path)
    checked = linted_commit.current(tmp_path)
    assert checked is not None
    assert linted_commit.remember(checked, tmp_path)
    commit(tmp_path)
    return tmp_path


def names(root: Path) -> set[str] | None:
    changed = linted_commit.changed_files(root)
    return None if changed is None else {str(file.relative_to(root)) for file in changed}


def test_what_has_changed_in_commits_and_in_the_working_tree(clone: Path) -> None:
    assert names(clone) == {linted_commit.FILE}
    (clone / "a.cpp").write_text("two\n")
    commit(clone)
    (clone / "new.cpp").write_text("one\n")
    (clone / "b.cpp").unlink()
    assert names(clone) == {linted_commit.FILE, "a.cpp", "new.cpp"}


def test_everything_is_read_if_the_commit_is_unknown(clone: Path) -> None:
    (clone / linted_commit.FILE).write_text("0123456789012345678901234567890123456789\n")
    assert names(clone) is None
    (clone / linted_commit.FILE).unlink()
    assert names(clone) is None


@pytest.mark.parametrize(
    ("file", "text", "counts"),
    [
        (".clang-tidy", "two\n", True),
        ("tools/requirements-dev.txt", "clang-tidy==2.0\npytest==1.0\n", True),
        ("tools/requirements-dev.txt", "clang-tidy==1.0\npytest==2.0\n", False),
    ],
)
def test_everything_is_read_if_the_rules_have_changed(
    clone: Path, file: str, text: str, counts: bool
) -> None:
    (clone / file).write_text(text)
    assert (names(clone) is None) == counts


def test_a_working_tree_with_changes_is_not_remembered(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = linted_commit.current(clone)
    assert checked is not None
    (clone / "a.cpp").write_text("two\n")
    assert linted_commit.current(clone) is None
    assert "commit the changes" in capsys.readouterr().err
    commit(clone)
    assert not linted_commit.remember(checked, clone), "another commit than the one that was checked"
