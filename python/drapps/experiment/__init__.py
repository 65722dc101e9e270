"""Experiments: what drapps claims of itself, measured again on your machine."""
