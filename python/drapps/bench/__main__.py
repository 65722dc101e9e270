"""python -m drapps.bench: the same as `drapps bench`."""

import sys

from .command import main

sys.exit(main())
