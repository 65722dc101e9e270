"""Selective preprocessing next to the storage: the experiments around `drapps serve`.

sophon_command.py is `drapps experiment sophon`: epochs.py runs epoch_child.py on the testbed, for each policy and share
of the store's CPU.  twins.py makes data sets.  server.py is `drapps experiment serve`.
"""
