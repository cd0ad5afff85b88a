"""A page that links a test names it: the text of such a link is a test of the linked file."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
CITATION = re.compile(r"\[(\w+)\]\((\.\./tests/[^)]+)\)")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\w+, (\w+)\)|^(?:async )?def (test_\w+)\(", re.MULTILINE)


def test_cited_tests_exist() -> None:
    cited = [
        (page.name, name, DOCS / link)
        for page in DOCS.glob("*.md")
        for name, link in CITATION.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(cited) > 40
    for page, name, path in cited:
        tests = {one or other for one, other in TEST.findall(path.read_text(encoding="utf-8"))}
        assert name in tests, f"{page} cites {name}, which is no test of {path.name}"
