"""drapps experiment: tables of the evaluation, with statistics, each cell kept as soon as it is measured.

command.py is `drapps experiment adapt`: scenarios of adapt.py and trainer.py, run by script.py, shown by tables.py.
cells.py runs what is not in the results file yet and appends it: what was stopped goes on where it was.

planted.py is `drapps experiment planted`: plants.py has what is planted, field.py runs it, remedies.py takes it away.
ahead/ is `drapps experiment ahead`, monitor/ is `drapps experiment monitor`.
"""
