"""drapps bench: one workload, many loaders, one table.

Modules here import only the standard library until a peer starts, because each peer runs in its own environment, where
neither drapps nor another peer is installed (see child.py).
"""
