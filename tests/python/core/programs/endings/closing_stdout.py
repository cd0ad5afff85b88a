"""Closes its standard streams, as argument 1 says; the job is none the worse for it."""

import sys

import weft


async def main():
    if sys.argv[1] != "none":
        sys.stdout.close()
    if sys.argv[1] == "close_both":
        sys.stderr.close()


if sys.argv[1] == "none":
    sys.stdout = None
weft.run(main)
weft.run(main) if sys.argv[1] == "none" else None
