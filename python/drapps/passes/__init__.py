"""Passes without a framework: what every front end needs to run, save, resume and replay a pass.

No module here imports torch.  torch's DataLoader, chains with .map() and .filter(), and later front ends stand on it.
"""
