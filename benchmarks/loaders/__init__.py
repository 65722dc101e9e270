"""drapps bench loaders: torch's DataLoader and drapps's beside each other, on Python data sets.

A workload is one file of workloads/ and one row of its table.  rounds.py runs its cases in random order, each in a
process of its own (run_case.py); case_table.py shows the result.  The loader's class is a parameter everywhere.
"""
