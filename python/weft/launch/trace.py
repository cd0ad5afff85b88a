"""The file of `weft run --trace`: each PE writes a part of it, and the launcher puts them together."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from weft.launch.command import UsageError


def prepare(file: str) -> Path:
    """The absolute path of the trace. Removes parts of an earlier job that did not end.

    Raises:
        UsageError: it cannot be written.
    """
    path = Path(file).absolute()
    try:
        with path.open("wb"):
            pass
        for part in _parts(path):
            part.unlink()
    except OSError as error:
        raise UsageError(f"--trace {file}: {error.strerror}") from error
    return path


def merge(path: Path) -> None:
    """Puts the parts into `path`, and removes them.

    A PE that was killed has none. A PE that is the only one writes `path` itself.
    """
    try:
        for part in _parts(path):
            with path.open("ab") as trace, part.open("rb") as packets:
                shutil.copyfileobj(packets, trace, 1 << 20)
            part.unlink()
        if path.stat().st_size > 0:
            return
        path.unlink()
    except OSError as error:
        print(f"weft run: the trace {path} cannot be written: {error.strerror}", file=sys.stderr)
        return
    print("weft run: no trace was written: the program does not use Weft, or was killed", file=sys.stderr)


def _parts(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.pe-*"))
