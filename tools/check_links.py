#!/usr/bin/env python3
"""Checks that relative links and the paths in backquotes of the Markdown pages name something that exists.

Usage: tools/check_links.py [PAGE ...]; without pages, all *.md files that git knows. Anchors are compared
with the headings of the page. Links to other hosts are not followed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*(```|~~~)")
# `src/machine/ucx/` or `tools/check_layers.py`: a path from one of the tree's folders.
PATH = re.compile(
    r"`((?:include|src|python|tests|tools|examples|miniapps|benchmarks|cmake|docs|\.ci)/[\w./-]*)`"
)


def anchors_of(page: Path) -> set[str]:
    """The anchors that a renderer gives the headings of a page."""
    anchors = set()
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip().lower()
            anchors.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return anchors


def problem_with(page: Path, link: str) -> str | None:
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return None
    name, _, anchor = link.partition("#")
    target = (page.parent / name) if name else page
    if not target.exists():
        return f"{link!r} names nothing that exists; correct the link"
    if anchor and target.suffix == ".md" and anchor not in anchors_of(target):
        return f"{link!r}: {target.name} has no heading #{anchor}; correct the anchor"
    return None


def check_page(page: Path, root: Path) -> Iterator[str]:
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        for match in LINK.finditer(line):
            problem = problem_with(page, match.group(1) or match.group(2))
            if problem:
                yield f"{page}:{number}: {problem}"
        for match in PATH.finditer(line):
            if not (root / match.group(1)).exists():
                yield f"{page}:{number}: `{match.group(1)}` is not in the tree; correct the path"


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parent.parent
    pages = [Path(name) for name in arguments]
    if not pages:
        command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        pages = [root / name for name in names]
    problems = [problem for page in pages for problem in check_page(page, root)]
    print("\n".join([*problems, f"check_links: {len(pages)} pages, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
