"""Worker processes for Python data sets.

fleet.py is the side of the process that trains, zygote.py starts and replaces workers, worker.py makes samples; pack.py
and layout.py carry them, seeds.py makes their random numbers independent of who made them.
"""

from drapps.fleet.fleet import Fleet, NothingPosted, Result, Sample, Stuck

__all__ = ["Fleet", "NothingPosted", "Result", "Sample", "Stuck"]
