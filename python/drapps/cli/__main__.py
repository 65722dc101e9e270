"""python -m drapps.cli: the program `drapps`."""

import sys

from drapps.cli import main

sys.exit(main())
