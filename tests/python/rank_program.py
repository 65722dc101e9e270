"""One rank of two (gloo): trains on its part of a data set in several ways and prints which samples it got, as JSON.

    RANK=r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=p python rank_program.py WAY ...
"""

import json
import os
import sys

import torch.distributed
from torch.utils.data import DistributedSampler
from trainer_parts import Classifier, Points, lightning_model, lightning_trainer, train

import drapps

N, EPOCHS = 24, 2


def sampler():
    """torch's DistributedSampler, in a plain loop."""
    data = Points(N)
    order = DistributedSampler(data)
    loader = drapps.DataLoader(data, batch_size=3, sampler=order, num_workers=1)
    return plain(loader, order.set_epoch)


def auto():
    """drapps's own ranks."""
    return plain(drapps.DataLoader(Points(N), batch_size=3, shuffle=True, rank="auto", num_workers=1))


def plain(loader, set_epoch=lambda epoch: None):
    model = Classifier()
    for epoch in range(EPOCHS):
        set_epoch(epoch)
        train(model, loader)
    return told(model, loader)


def told(model, loader):
    return {"keys": model.keys, "counted": loader.stats()["samples"], "ours": isinstance(loader, drapps.DataLoader)}


def accelerate():
    """Accelerate gives each rank other batches, by a batch sampler of its own."""
    from accelerate import Accelerator

    loader = Accelerator(cpu=True).prepare(drapps.DataLoader(Points(N), batch_size=3, shuffle=True, num_workers=1))
    return plain(loader)


def lightning():
    """Lightning puts a DistributedSampler into a new loader of the same class."""
    model = lightning_model()
    trainer = lightning_trainer(max_epochs=EPOCHS, strategy="ddp", devices=2)
    trainer.fit(model, drapps.DataLoader(Points(N), batch_size=3, shuffle=True, num_workers=1))
    return told(model.model, trainer.train_dataloader)


def main(ways):
    torch.distributed.init_process_group("gloo")
    found = {way: globals()[way]() for way in ways}
    print("RESULT " + json.dumps({"rank": int(os.environ["RANK"]), **found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
