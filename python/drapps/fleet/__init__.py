"""Worker processes for Python code.

base.py is the side of the process that trains, zygote.py starts and replaces workers, claims.py is the life of one;
pack.py carries what they make.  On these stand fleet.py, worker.py and their parts for data sets of torch, and chain.py
for chains with Python functions, which does without torch.
"""
