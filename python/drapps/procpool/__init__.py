"""Worker processes for Python code, on Linux.

base.py is the side of the process that trains, with keeper.py; first.py starts the first worker, zygote.py the others
and those that replace dead ones; claims.py is the life of one; pack.py carries what they make, tensors.py tensors in
it; stacks.py shows where a worker is stuck.

On these stands what makes data sets of torch: pool.py and worker.py, with slots.py and items.py; request.py, layout.py
and book.py carry indices and samples, failure.py errors, setup.py the data set; seeds.py makes random numbers
independent of who draws them.  chain.py makes chains with Python functions, and does without torch.
"""
