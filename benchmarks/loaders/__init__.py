"""drapps bench loaders: compares torch's DataLoader with drapps.DataLoader on Python data sets.

A workload is a file of workloads/ and a row of its table.  rounds.py runs its cases in random order, each in its own
process (run_case.py); case_table.py shows the result.  The loader's class is a parameter everywhere.
"""
