"""drapps for PyTorch: a DataLoader with torch's interface, and what it is made of."""
