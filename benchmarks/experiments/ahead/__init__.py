"""drapps experiment ahead: are batches ready when they are needed, without a larger buffer than necessary?

Reads are slow, so several batches must be in flight; in the middle of the run the consumer becomes twice as fast.
ahead_command.py is the command and consumer_child.py the run that it starts; ahead_figures.py reads the run's trace,
and ahead_judge.py compares the figures of all rounds with the aims.
"""
