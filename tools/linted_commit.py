#!/usr/bin/env python3
"""Which files have changed since the last commit at which `make lint-all` found nothing.

Usage: tools/linted_commit.py [--remember]

Prints the changed files. With --remember, writes the commit of a clean working tree into tools/linted-commit,
which is committed with the next change. clang-tidy and the check of headers read only what has changed since:
all of it takes ten minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = "tools/linted-commit"
# If one of these changes, what was found before counts no more.
RULES = (".clang-tidy", "tools/run_clang_tidy.py", "tools/check_headers.py", "cmake/WeftHeaderCheck.cmake")


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
    versions = git(root, "diff", "--unified=0", commit, "--", "tools/requirements-dev.txt") or ""
    if names & set(RULES) or any(line[1:].startswith("clang-tidy=") for line in versions.splitlines()):
        return None
    return {root / name for name in names if (root / name).is_file()}


def remember(root: Path = ROOT) -> str | None:
    """Writes the current commit. Returns why it could not."""
    status, commit = git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD")
    if status is None or commit is None:
        return "this is no clone"
    if status:
        return (
            "the working tree has changes that are not committed; commit them and run `make lint-all` again"
        )
    (root / FILE).write_text(commit, encoding="utf-8")
    return None


def main(arguments: list[str]) -> int:
    if arguments == ["--remember"]:
        why = remember()
        print(f"linted_commit: {f'not remembered: {why}' if why else f'{FILE} is written; commit it'}")
        return 1 if why else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    changed = changed_files()
    print("all" if changed is None else "\n".join(sorted(str(file.relative_to(ROOT)) for file in changed)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
