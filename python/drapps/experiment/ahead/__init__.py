"""drapps experiment ahead: are batches ready when they are needed, and no more of them than that takes?

Reads take long, so that several batches must be under way at a time; in mid-run the consumer becomes twice as fast.
command.py is the program, consumer_child.py the run that it starts; figures.py reads the run's trace, and judge.py
holds the figures of all rounds against what is aimed at.
"""
