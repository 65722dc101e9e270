"""PyTorch's side of drapps: DataLoader, a drop-in for torch.utils.data.DataLoader."""
