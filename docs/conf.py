"""Sphinx's settings for the site that `make docs` builds from the pages of this repository.

README.md is the first page. The pages stay plain Markdown, so that they read the same on a forge. The sidebar
lists them in the order in which README.md links them; Sphinx reports a page that is in no section.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent

project = "Weft"
project_copyright = "the Weft authors. Apache License 2.0"
version = release = re.findall(r"project\(weft VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[0]

extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/**.md",
    "examples/*.md",
    "miniapps/**.md",
    "benchmarks/**.md",
    "src/**README.md",
    "mpi/**README.md",
    "python/**README.md",
]
# Folders without pages, some of them large, are not searched.
exclude_patterns = [".*", "build*", "venv*", "cmake", "include", "tests", "tools"]
# Links to headings work as on a forge: page.md#heading.
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"Weft {version}"
html_copy_source = False
html_extra_path = ["site"]  # index.html, which leads to README.html

# The sidebar's sections: the pages that README.md links and that match, then the other pages of a folder.
SECTIONS = {
    "Guide": (r"docs/[\w-]+", ()),
    "Examples and measurements": (
        r"(?:examples|miniapps|benchmarks)/.+",
        (
            "miniapps/*/README",
            "benchmarks/task_bench/README",
            "benchmarks/results/*/README",
            "benchmarks/results/*/pes-*",
            "benchmarks/results/*/*/report",
        ),
    ),
    "How it works": (r"[A-Z]+", ("docs/decisions/*",)),
    # README.md links none of these: ARCHITECTURE.md has their index.
    "Folders of the source": (r"src/.+", ("src/**README", "mpi/**README", "python/**README")),
}
PYTHON_REFERENCE = "docs/python-api"


def contents(text: str) -> str:
    """The sidebar's entries, as MyST directives that show nothing on the page itself."""
    linked = list(dict.fromkeys(re.findall(r"\]\(([\w./-]+)\.md(?:#[\w-]*)?\)", text)))
    directives = []
    for caption, (pattern, others) in SECTIONS.items():
        pages = [page for page in linked if re.fullmatch(pattern, page)] + list(others)
        head = ["```{toctree}", ":hidden:", ":glob:", f":caption: {caption}", ""]
        directives.append("\n".join([*head, *pages, "```"]))
    return "\n\n".join(directives)


def complete_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Adds what only the site has: its contents, and the link to the reference that pdoc writes."""
    if page == root_doc:
        source[0] += "\n\n" + contents(source[0]) + "\n"
    elif page == PYTHON_REFERENCE:
        source[0] += '\n\n<a href="../api/weft.html">The reference of the package, with all docstrings</a>\n'


def setup(app: Sphinx) -> None:
    app.connect("source-read", complete_page)
