"""drapps experiment: the tables of the evaluation, with statistics.  Each cell is saved as soon as it is measured.

adapt_command.py is `drapps experiment adapt`: scenarios of adapt.py and adapt_training.py, run by adapt_phases.py,
shown by adapt_tables.py.  cells.py appends each result to a file and skips existing results, so that a stopped run can
continue.

planted.py is `drapps experiment planted`: plants.py lists the bottlenecks, planted_case.py runs one, remedies.py
removes it and measures again.
ahead/ is `drapps experiment ahead`, monitor/ is `drapps experiment monitor`.
ranges_command.py is `drapps experiment ranges`: bytes that crops read of a folder.
rl/ is `drapps experiment rl`: PPO beside Stable-Baselines3's.
storage/ is `drapps experiment storage`, testbed/ is `drapps experiment testbed`, sophon/server.py is `drapps experiment
serve`.
"""
