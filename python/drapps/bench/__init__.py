"""drapps bench: one workload, many loaders, one table.

Modules here import the standard library alone until a peer starts, because each peer runs in an environment of its
own, where neither drapps nor another peer is installed (see child.py).
"""
