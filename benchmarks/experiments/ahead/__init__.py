"""drapps experiment ahead: are batches ready when they are needed, and no more of them than that takes?

Reads take long, so that several batches must be in flight at a time; in mid-run the consumer becomes twice as fast.
ahead_command.py is the program and consumer_child.py the run that it starts; ahead_figures.py reads the run's trace,
and ahead_judge.py compares the figures of all rounds with the aims.
"""
