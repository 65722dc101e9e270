"""A tiny data set and tiny models for the trainers' tests; each notes the keys of the samples it was trained on."""

import torch
from op_runner import import_torchvision
from torch import nn
from torch.utils.data import Dataset

import_torchvision()  # which trainers import too, where it is installed


class Points(Dataset):
    """Points with a label; sample k is {"x", "labels", "key": k}."""

    def __init__(self, n):
        self.x = torch.randn(n, 4, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, key):
        return {"x": self.x[key], "labels": int(self.x[key].sum() > 0), "key": key}


class Classifier(nn.Module):
    """What Hugging Face's Trainer and plain loops train."""

    def __init__(self):
        super().__init__()
        self.layer, self.keys = nn.Linear(4, 2), []

    def forward(self, x, labels, key):
        self.keys += key.tolist()
        logits = self.layer(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def lightning_model(loader=None):
    """A LightningModule; with a function that makes the loader, it has the hook train_dataloader."""
    import pytorch_lightning

    class Module(pytorch_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Classifier()

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def validation_step(self, batch, index):
            """Notes nothing."""

        def predict_step(self, batch, index):
            return self.model(**batch)["logits"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    if loader is not None:
        Module.train_dataloader = lambda self: loader()
    return Module()


def lightning_trainer(**more):
    import pytorch_lightning

    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    return pytorch_lightning.Trainer(accelerator="cpu", **{**quiet, **more})


def train(model, batches):
    """A plain loop."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for batch in batches:
        optimizer.zero_grad()
        model(**batch)["loss"].backward()
        optimizer.step()
