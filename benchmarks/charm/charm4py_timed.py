"""Runs a program that was written for charm4py, and prints the seconds from the begin of its main to its end.

    charm4py_timed.py PROGRAM [ARGUMENTS...]

The program's main is a function. The code runs in this module, because other PEs find its classes and
functions in `__main__`.
"""

import sys
import time
from pathlib import Path

from charm4py import charm

_start, _exit = charm.start, charm.exit


def _timed(entry):
    def main(args):
        begin = time.perf_counter()

        def tell():
            print("seconds:", time.perf_counter() - begin, flush=True)

        def exit_charm(*code):
            tell()
            _exit(*code)

        charm.exit = exit_charm
        try:
            entry(args)
        except SystemExit:  # exit()
            tell()
            raise

    return main


charm.start = lambda entry: _start(_timed(entry))
del sys.argv[0]
exec(compile(Path(sys.argv[0]).read_text(encoding="utf-8"), sys.argv[0], "exec"))
