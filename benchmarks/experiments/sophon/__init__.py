"""Selective preprocessing next to the storage: the experiments around `drapps serve`.

sophon_command.py is `drapps experiment sophon`, with a part in each file: traffic.py counts bytes; policy_epochs.py,
remote.py, stage_bounds.py, overhead.py, vary.py and cache.py run children on the testbed, with the servers of hosts.py.
twins.py makes data sets.  server.py is `drapps experiment serve`.
"""
