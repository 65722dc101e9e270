"""Worker processes for Python data sets, on Linux.

fleet.py is the side of the process that trains, with keeper.py; zygote.py starts and replaces workers; worker.py makes
samples, with slots.py and items.py.  request.py, pack.py, layout.py and book.py carry indices and samples, failure.py
errors, setup.py the data set; seeds.py makes random numbers independent of who draws them; stacks.py shows where a
worker is stuck.
"""

from drapps.fleet.fleet import Fleet, NothingPosted, Result, Sample, Stuck

__all__ = ["Fleet", "NothingPosted", "Result", "Sample", "Stuck"]
