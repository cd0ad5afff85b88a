"""Where the measuring programs and mini-apps are: executables and scripts, each a file with a known name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from weft_bench.errors import BenchError


@dataclasses.dataclass(frozen=True)
class Programs:
    """Executables come from `folder` when one is given, else from the builds of the checkout in use.

    Scripts come from there as well, or from the checkout's sources.
    """

    folder: Path | None = None

    def find(self, name: str) -> Path | None:
        """The program called `name` (with ".py" for a script); None when there is none."""
        return next((path for folder in self._folders() if (path := folder / name).is_file()), None)

    def need(self, name: str) -> Path:
        path = self.find(name)
        if path is None:
            raise BenchError(f"measuring program {name} was not found; {self.advice(name)}")
        return path

    def advice(self, name: str) -> str:
        """What to do when `name` is not found."""
        if self.folder is not None:
            return f"it is not in {self.folder}, which --programs names: give the folder it was built in"
        if name.endswith(".py"):
            return "run from a checkout of Weft, or give the folder benchmarks/python of one with --programs"
        return "build it with cmake -DWEFT_BUILD_BENCHMARKS=ON, or give the folder it is in with --programs"

    def _folders(self) -> list[Path]:
        here = checkout()
        scripts = [] if here is None else [here / "benchmarks" / "python", *(here / "miniapps").glob("*")]
        if self.folder is not None:
            return [self.folder, self.folder / "python", self.folder.parent / "miniapps", *scripts]
        return scripts if here is None else [*scripts, *_builds(here)]


def _builds(folder: Path) -> list[Path]:
    """Where the builds of a checkout have their programs, the latest build first, quick builds last."""
    parts = [f"{build}/{part}" for build in ("build*", "build/*") for part in ("benchmarks", "miniapps")]
    found = [path for pattern in parts for path in folder.glob(pattern)]
    return sorted(found, key=lambda path: (_is_quick(path.parent), -path.stat().st_mtime))


def _is_quick(build: Path) -> bool:
    """Whether the programs of this build are less optimised: then they are for tests."""
    cache = build / "CMakeCache.txt"
    return cache.is_file() and "WEFT_QUICK_BUILD:BOOL=ON" in cache.read_text(encoding="utf-8")


def checkout() -> Path | None:
    """The checkout of Weft around this package (or its environment), else around the current folder."""
    package, current = Path(__file__).resolve().parent, Path.cwd()
    candidates = [*package.parents, current, *current.parents]
    return next((folder for folder in candidates if (folder / "include" / "weft").is_dir()), None)
