"""Prints published figures of GPU communication with Weft's beside them."""

import sys

from goals.command import published

if __name__ == "__main__":
    sys.exit(published())
