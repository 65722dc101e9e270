"""drapps experiment: tables of the evaluation, with statistics, each cell kept as soon as it is measured.

An experiment is a module with TITLE, OPTIONS, cells(options) and show(results, options).  cells.py runs what is not in
the results file yet and appends it: an experiment that was stopped goes on where it was.
"""
