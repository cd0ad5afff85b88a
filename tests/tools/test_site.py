"""`make docs` builds a site of all pages without a warning. tests/python/test_pages.py runs its programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_site_has_every_page(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs"]
    built = subprocess.run(
        [*command, "-d", str(tmp_path / "doctrees"), ".", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "README.html" in (site / "index.html").read_text(encoding="utf-8")
    sidebar = (site / "README.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f'href="docs/{page.stem}.html"' in sidebar
    assert "../api/weft.html" in (site / "docs" / "python-api.html").read_text(encoding="utf-8")
