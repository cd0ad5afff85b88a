"""``python -m charmrun.start +p4 app.py``: the program on four PEs, started by `weft run`."""

import sys

from weft._cli.charmrun import start

if __name__ == "__main__":
    start(sys.argv[1:])
