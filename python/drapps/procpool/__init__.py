"""Worker processes for Python code, on Linux.

Main process:   process_pool.py, with dataset_pool.py for data sets of torch and chain_pool.py for chains with Python
                functions; prefetch_window.py decides how many batches are in flight, and posts them; tuning.py turns
                knobs; supervisor.py and launch.py start and end the processes.
Zygote:         zygote.py forks the workers and replaces dead ones.
Workers:        worker_loop.py, with worker.py for data sets of torch (chain_pool.py has its own); seeds.py keys random
                numbers by sample.
Between them:   pack.py carries requests and objects, layout.py samples and batches, torch_pack.py tensors and errors.

All files but dataset_pool, worker, layout, seeds and torch_pack do without torch.
"""
