"""Where the measuring programs are: C++ executables and Python scripts, each a file with a known name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from weft.bench.errors import BenchError


@dataclasses.dataclass(frozen=True)
class Programs:
    """Looks in `folder` when one is given, else in the checkout in use and its builds."""

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
            return f"it is not in {self.folder}: give the folder it was built in with --programs"
        if name.endswith(".py"):
            return "run from a checkout of Weft, or give the folder benchmarks/python of one with --programs"
        return "build it with cmake -DWEFT_BUILD_BENCHMARKS=ON, or give the folder it is in with --programs"

    def _folders(self) -> list[Path]:
        if self.folder is not None:
            return [self.folder, self.folder / "python"]
        here = checkout()
        if here is None:
            return []
        builds = sorted(
            (f for pattern in ("build*", "build/*") for f in here.glob(f"{pattern}/benchmarks")),
            key=lambda path: path.stat().st_mtime,
            reverse=True,
        )
        return [here / "benchmarks" / "python", *builds]


def checkout() -> Path | None:
    """The checkout of Weft around this package (or its environment), else around the current folder."""
    package, current = Path(__file__).resolve().parent, Path.cwd()
    candidates = [*package.parents, current, *current.parents]
    return next((folder for folder in candidates if (folder / "include" / "weft").is_dir()), None)
