"""The training loop that the examples share."""

import time

import torch


def train_epoch(model, optimizer, loader, loss_of):
    """Train an epoch; return (keys of the samples, mean loss)."""
    keys, losses = set(), []
    for inputs, targets, batch_keys in loader:
        loss = loss_of(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        keys.update(batch_keys.tolist())
    return keys, sum(losses) / len(losses)


def train(model, loader, loss_of, epochs, what):
    """Train on batches (inputs, targets, keys) and print a line per epoch.  what: the name of the samples."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for epoch in range(epochs):
        began = time.perf_counter()
        keys, loss = train_epoch(model, optimizer, loader, loss_of)
        seconds = time.perf_counter() - began
        print(f"epoch {epoch}: {len(keys)} {what} in {seconds:.1f} s, mean loss {loss:.3f}")
