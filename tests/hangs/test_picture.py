"""The picture of docs/hangs.md: what a terminal shows of a program that hangs.

After a change of the report write the picture anew: python tests/hangs/test_picture.py
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PROGRAM = Path(__file__).parent / "programs" / "main_hangs.py"
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "hangs.svg"
LIMIT_S = 60


def report() -> str:
    """What the program's job writes, with the times of the default setting."""
    command = [sys.executable, "-m", "weft", "run", "-n", "2", "--hang-report", "0.3,end", PROGRAM.name]
    job = subprocess.run(
        command, cwd=PROGRAM.parent, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    # The launcher says the same of the end as without a report.
    lines = [line for line in job.stderr.splitlines() if line.startswith(("weft: the program", "  "))]
    text = re.sub(r"\d+\.\d+ s", "10.0 s", "\n".join(lines))
    return text.replace("weft: PE 0: ", "weft: ") + "\n"


def svg(text: str) -> str:
    console = Console(
        record=True, width=120, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print("$ weft run -n 2 main_hangs.py", highlight=False)
    shown = Text(text, end="")
    shown.highlight_regex(r"cause: .*", "bold red")
    shown.highlight_regex(r"\(main_hangs\.py:\d+\)", "cyan")
    console.print(shown)
    drawn = console.export_svg(title="A program that hangs", unique_id="weft-hangs")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # it names a server


def test_the_picture_of_the_page_is_that_of_the_report() -> None:
    assert PICTURE.read_text(encoding="utf-8") == svg(report()), "write it anew, see the head of this file"


if __name__ == "__main__":
    PICTURE.write_text(svg(report()), encoding="utf-8")
