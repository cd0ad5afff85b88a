"""Judges this project's goals by what it measures or by files; --help says how."""

import sys

from goals.command import figures

if __name__ == "__main__":
    sys.exit(figures())
