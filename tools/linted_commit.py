#!/usr/bin/env python3
"""Which files have changed since the last commit at which `make lint-all` found nothing.

Usage: tools/linted_commit.py [--current | --remember COMMIT]

Prints the changed files. --current prints the commit of a working tree without changes. --remember writes
that commit into tools/linted-commit, which is committed with the next change. clang-tidy and the check of
headers read only what has changed since: all of it takes ten minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = "tools/linted-commit"
# If one of these changes, what was found before counts no more.
RULES = (
    ".clang-tidy",
    "cmake/WeftHeaderCheck.cmake",
    "cmake/WeftSettings.cmake",
    "cmake/WeftTargets.cmake",
    "tools/check_headers.py",
    "tools/linted_commit.py",
    "tools/run_clang_tidy.py",
)


def git(root: Path, *words: str) -> str | None:
    """What git prints; None if it fails or is not there."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def changed_files(root: Path = ROOT) -> set[Path] | None:
    """The files that differ from the remembered commit, and those that git does not know yet.

    None if all files are to be read: the commit is not in this clone, or the rules have changed.
    """
    file = root / FILE
    commit = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    changed = git(root, "diff", "--name-only", "-z", commit, "--") if commit else None
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if changed is None or new is None:
        return None
    names = {name for name in (changed + new).split("\0") if name}
    # The version of clang-tidy is one of the rules.
    versions = (
        git(
            root,
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--unified=0",
            commit,
            "--",
            "tools/requirements-dev.txt",
        )
        or ""
    )
    if names & set(RULES) or any(line[1:].startswith("clang-tidy=") for line in versions.splitlines()):
        return None
    return {root / name for name in names if (root / name).is_file()}


def current(root: Path = ROOT) -> str | None:
    """The commit of the working tree; None, and says why, if it has changes or is no clone."""
    status, commit = git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD")
    if status is None or commit is None:
        print("linted_commit: this is no clone", file=sys.stderr)
        return None
    if status:
        print("linted_commit: commit the changes of the working tree first", file=sys.stderr)
        return None
    return commit.strip()


def remember(commit: str, root: Path = ROOT) -> bool:
    """Writes the commit, if it is still that of the working tree."""
    if current(root) != commit:
        print(f"linted_commit: {commit} was checked, and is not the working tree's any more", file=sys.stderr)
        return False
    (root / FILE).write_text(commit + "\n", encoding="utf-8")
    return True


def main(arguments: list[str]) -> int:
    if arguments == ["--current"]:
        commit = current()
        print(commit or "", end="\n" if commit else "")
        return 0 if commit else 1
    if len(arguments) == 2 and arguments[0] == "--remember":
        return 0 if remember(arguments[1]) else 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    changed = changed_files()
    print("all" if changed is None else "\n".join(sorted(str(file.relative_to(ROOT)) for file in changed)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
