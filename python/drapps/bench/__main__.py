"""python -m drapps.bench: the same as `drapps bench`."""

import sys

from .bench_command import main

sys.exit(main())
