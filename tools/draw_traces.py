"""Makes the pictures of docs/slow.md, and prints the summaries that the page quotes.

    python tools/draw_traces.py [FOLDER]

Runs examples/09_balance on two PEs without load balancing and with it, as the page does. Writes the
plots of both traces to docs/pictures, or to FOLDER. The package weft[trace] must be installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "examples" / "09_balance" / "balance.py"
STRATEGIES = {"slow-before": "none", "slow-after": "greedy_refine"}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    weft = [sys.executable, "-m", "weft"]
    with tempfile.TemporaryDirectory(prefix="weft-traces-") as traces:
        for name, strategy in STRATEGIES.items():
            trace = str(Path(traces) / name)
            run = ["run", "-n", "2", "--lb", strategy, "--trace", trace]
            subprocess.run([*weft, *run, str(PROGRAM)], check=True)
            subprocess.run([*weft, "trace", trace, "--plot", str(folder / f"{name}.png")], check=True)


main()
