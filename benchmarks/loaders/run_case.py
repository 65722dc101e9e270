"""Runs a case of a workload in this process: python -m benchmarks.loaders.run_case WORKLOAD CASE.json.

Prints a JSON line with the figures.  CASE.json has the case and the options.
"""

import gc
import json
import os
import sys

from drapps.bench import process
from drapps.bench.child import end_tree
from . import workloads
from .case import Case, loader_class


def main(argv):
    name, order = argv[0], json.loads(argv[1])
    workload = workloads.load(name)
    gc.collect()  # 100 ms with torch in the process, and chance says in whose wait it would come by itself
    base = process.pss_bytes(os.getpid())  # torch is imported by now, no loader of ours yet
    case = Case(**order["case"])
    figures = workload.run(loader_class(case.loader), case, {**order["options"], "base_pss": base})
    print(json.dumps({**figures, "load": round(os.getloadavg()[0], 2)}), flush=True)
    end_tree(process)


if __name__ == "__main__":
    main(sys.argv[1:])
