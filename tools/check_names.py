#!/usr/bin/env python3
"""Checks that files that are compiled together do not define a name twice in their unnamed namespaces.

Usage: tools/check_names.py [ROOT]

The sanitized and the quick build compile several sources of a layer, and of a test program, as one
(cmake/WeftQuickBuild.cmake). The full build compiles each file alone. So two files that define a
`struct Block` in an unnamed namespace fail in some builds only. Which files meet changes with each file
that is added, so all files of a target are compared. Functions count with their parameters, because
overloads may share a name.

The check reads lines that begin in the first column, as clang-format leaves definitions of a namespace.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ALONE = re.compile(r"set_source_files_properties\(([^()]*) PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON\)")
CALL = re.compile(r"(weft_add_layer|weft_add_(?:gpu_)?test)\(([^()]*)\)")
TYPE = re.compile(r"(?:struct|class|union|enum class|enum)\s+(?:\[\[\w+\]\]\s+)?(\w+)(?!\w*;)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
FUNCTION = re.compile(r"(?!TEST|INSTANTIATE|TYPED_TEST|static_assert)[\w:<>,&*\[\] ]*?[\s&*>](\w+)(\([^;]*)")
VARIABLE = re.compile(r"[\w:<>,&* ]+?[\s&*>](\w+)(?:\[\w*\])?\s*(?:=|\{|;)")


def targets(root: Path) -> Iterator[tuple[Path, list[Path]]]:
    """The lists of sources that are compiled together, each with the file that declares it."""
    declarations = [file for folder in ("src", "tests") for file in (root / folder).rglob("CMakeLists.txt")]
    folders = {file.parent for file in declarations}
    for declaration in sorted(declarations):
        folder = declaration.parent
        text = re.sub(r"#.*", "", declaration.read_text(encoding="utf-8"))
        alone = {folder / word for match in ALONE.finditer(text) for word in match.group(1).split()}
        for call in CALL.finditer(text):
            words = call.group(2).split()
            if call.group(1) == "weft_add_layer":
                # All files of its folders, because a layer may list its sources by a pattern.
                sources = sorted(folder.rglob("*.cpp"))
                inner = [other for other in folders if other != folder and other.is_relative_to(folder)]
                yield (
                    declaration,
                    [one for one in sources if not any(one.is_relative_to(other) for other in inner)],
                )
            else:
                named = [
                    word.replace("${weft_SOURCE_DIR}", str(root)) for word in words if word.endswith(".cpp")
                ]
                sources = [folder / word for word in named]
                yield declaration, [source for source in sources if source.is_file() and source not in alone]


def entry_points(root: Path) -> Iterator[tuple[Path, list[Path]]]:
    """The entry points of the MPI library, which its CMakeLists.txt lists by a pattern."""
    if (root / "mpi/src").is_dir():
        yield root / "mpi/CMakeLists.txt", sorted((root / "mpi/src").rglob("*.cpp"))


def names_in(text: str) -> Iterator[tuple[str, int]]:
    """What a source defines in unnamed namespaces, with the line."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace"):
            # An inner namespace with a name ends the search: what follows is found in the next unnamed one.
            inside = False
        elif inside and re.match(r"[A-Za-z_\[]", line):
            name = name_of(line)
            if name:
                yield name, number


def name_of(line: str) -> str | None:
    line = re.sub(r"^(?:template <[^>]*>\s*|\[\[[\w:]+\]\]\s*)", "", line)
    for pattern in (TYPE, ALIAS):
        if match := pattern.match(line):
            return match.group(1)
    if match := FUNCTION.match(line):
        return match.group(1) + re.sub(r"\s*(const )?(noexcept )?\{.*", "", match.group(2))
    if match := VARIABLE.match(line):
        return match.group(1)
    return None


def problems(root: Path) -> Iterator[str]:
    for declaration, sources in (*targets(root), *entry_points(root)):
        seen: dict[str, list[str]] = defaultdict(list)
        for source in sources:
            for name, number in dict(names_in(source.read_text(encoding="utf-8"))).items():
                seen[name].append(f"{source.relative_to(root)}:{number}")
        for name, places in sorted(seen.items()):
            if len(places) > 1:
                where = ", ".join(places)
                folder = declaration.parent.relative_to(root)
                yield (
                    f"{where}: '{name}' is defined in several files that {folder} compiles together; "
                    "rename all but one"
                )


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    root = root if len(sys.argv) > 1 else root.parent.parent
    found = list(problems(root))
    for problem in found:
        print(problem)
    num_targets = sum(1 for _ in targets(root))
    print(f"check_names: {num_targets} targets, {len(found)} names that are defined twice")
    return 1 if found or num_targets == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
