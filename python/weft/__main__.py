"""`python -m weft` is the `weft` command."""

import sys

from weft.cli import main

sys.exit(main())
