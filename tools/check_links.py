#!/usr/bin/env python3
"""Checks that relative links, and paths and names of files in backquotes, of the Markdown pages exist.

Usage: tools/check_links.py [PAGE ...]; without pages, all *.md files that git knows. Anchors are compared
with the headings of the page. Links to other hosts are not followed, and blocks between fences are not read.

`kinds/kind.h` is looked for in the page's folder, in the root, in the include roots, and in the folders that
the paragraph, list item or table row names. So the page of a folder names its subfolders, and a file that
moves is found. Pages outside CODE may name any file of the tree by the end of its path.
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
# `kind.h` or `kinds/kind.h`: a file that looks like a source or a page.
NAME = re.compile(r"`([\w.+-]+(?:/[\w.+-]+)*\.(?:h|cpp|py|c|cu|md|txt))`")
# `kinds/`, `kinds/kind.h` or `kinds/<name>.h`: what names a folder in backquotes.
FOLDER = re.compile(r"`([\w.+/-]*)/[^`/\s]*`")
ITEM = re.compile(r"\s*(\||[-*] |\d+\. )")
INCLUDE_ROOTS = ("include", "src", "python", "python/weft", "mpi")
# A page here is about the files of its folder.
CODE = ("src", "mpi", "python", "miniapps")


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


def blocks_of(page: Path) -> Iterator[list[tuple[int, str]]]:
    """The paragraphs, list items and table rows outside fences: numbered lines."""
    fenced = False
    block: list[tuple[int, str]] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        is_fence = FENCE.match(line) is not None
        fenced ^= is_fence
        if is_fence or fenced or not line.strip() or ITEM.match(line):
            yield block
            block = []
        if not is_fence and not fenced:
            block.append((number, line))
    yield block


def folders_named(block: list[tuple[int, str]], bases: list[Path]) -> list[Path]:
    """The folders in the paths and links of a block."""
    text = "\n".join(line for _, line in block)
    links = [(link or image).partition("#")[0] for link, image in LINK.findall(text)]
    names = [*FOLDER.findall(text), *links, *(link.rpartition("/")[0] for link in links)]
    return [base / name for base in bases for name in names]


def check_page(page: Path, root: Path, files: list[str]) -> Iterator[str]:
    bases = [page.parent, root, *(root / folder for folder in INCLUDE_ROOTS)]
    is_code = any(page.resolve().is_relative_to(root / folder) for folder in CODE)
    for block in blocks_of(page):
        folders = bases + folders_named(block, bases)
        for number, line in block:
            for match in LINK.finditer(line):
                problem = problem_with(page, match.group(1) or match.group(2))
                if problem:
                    yield f"{page}:{number}: {problem}"
            for match in PATH.finditer(line):
                if not (root / match.group(1)).exists():
                    yield f"{page}:{number}: `{match.group(1)}` is not in the tree; correct the path"
            for match in NAME.finditer(line):
                name = match.group(1)
                if PATH.fullmatch(match.group()) or any((folder / name).exists() for folder in folders):
                    continue
                found = [file for file in files if file.endswith(f"/{name}")]
                if is_code or not found:
                    where = f"write its folder: {', '.join(found[:3])}" if found else "correct the name"
                    yield f"{page}:{number}: `{name}` is not where the page says; {where}"


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parent.parent
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pages = [Path(name) for name in arguments] or [root / name for name in files if name.endswith(".md")]
    problems = [problem for page in pages for problem in check_page(page, root, files)]
    print("\n".join([*problems, f"check_links: {len(pages)} pages, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
