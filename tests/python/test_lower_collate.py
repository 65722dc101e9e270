"""A collate_fn that is default_collate and a mixture of the batch: the engine makes the batch, and the mixture is that
of a worker process.  Any other one gets its samples."""

import math
import random

import pytest
import torch
from torch.utils.data import default_collate

from lower_sets import cifar, identity, v1, v2

from drapps import DataLoader
from drapps.torch.lower_collate import lower_collate

N_CLASSES = 4


def dataset(n=12):
    return cifar(n, v1.Compose([v1.ToTensor(), v1.Normalize([0.5], [0.25])]))


class RandomMixUp(torch.nn.Module):
    """In the way of torchvision's references."""

    def __init__(self, num_classes=N_CLASSES, p=1.0, alpha=0.4, inplace=False):
        super().__init__()
        self.num_classes, self.p, self.alpha, self.inplace = num_classes, p, alpha, inplace

    def forward(self, batch, target):
        if batch.ndim != 4:
            raise ValueError(f"Batch ndim should be 4. Got {batch.ndim}")
        target = torch.nn.functional.one_hot(target, num_classes=self.num_classes).to(dtype=batch.dtype)
        if torch.rand(1).item() >= self.p:
            return batch, target
        share = float(torch._sample_dirichlet(torch.tensor([self.alpha, self.alpha]))[0])
        rolled = batch.roll(1, 0).mul_(1.0 - share)
        return batch.mul(math.sqrt(share) ** 2).add_(rolled), target * share + target.roll(1, 0) * (1.0 - share)


MIX = v2.MixUp(num_classes=N_CLASSES)
CUT_OR_MIX = v2.RandomChoice([v2.CutMix(num_classes=N_CLASSES), MIX])
OWN = v1.RandomChoice([RandomMixUp(), RandomMixUp(p=0.5)])


def by_global(batch):
    return MIX(*default_collate(batch))


def by_closure(mix):
    def collate_fn(batch):
        return mix(*default_collate(batch))

    return collate_fn


def by_steps(batch):
    images, labels = default_collate(batch)
    return CUT_OR_MIX(images, labels)


NATIVE = [by_global, by_closure(CUT_OR_MIX), by_closure(OWN), by_closure(RandomMixUp()), by_steps,
          lambda batch: MIX(*default_collate(batch)), lambda b: MIX(*torch.utils.data.default_collate(b))]  # fmt: skip


def passes(loader, n=2):
    return [list(batch) for _ in range(n) for batch in loader]


def same(one, other):
    return len(one) == len(other) and all(torch.equal(a, b) for x, y in zip(one, other) for a, b in zip(x, y))


@pytest.mark.parametrize("collate", NATIVE)
@pytest.mark.parametrize("in_order", [True, False])
def test_mixtures_are_those_of_worker_processes(collate, in_order, monkeypatch):
    """Images have nothing random here, so all that can differ is the mixture."""
    torch.manual_seed(5)
    loader = DataLoader(dataset(), 4, num_workers=2, collate_fn=collate, in_order=in_order)
    assert "by 2 threads, natively" in loader.explain() and "on each batch" in loader.explain()
    mine = passes(loader)
    assert all(labels.shape == (4, N_CLASSES) and labels.dtype == torch.float32 for _, labels in mine)
    if not in_order:
        return
    monkeypatch.setattr("drapps.torch.dataloader.lower_collate", lambda function: None)
    torch.manual_seed(5)
    loader = DataLoader(dataset(), 4, num_workers=2, collate_fn=collate)
    assert "worker processes" in loader.explain() and same(passes(loader), mine)


def test_the_trainers_generators_and_modes_have_no_part_in_it():
    def run():
        loader = DataLoader(dataset(), 4, num_workers=1, collate_fn=by_closure(OWN), seed=3)
        return passes(loader, 1)

    first, before = run(), (random.getstate(), torch.get_rng_state())
    with torch.inference_mode(), torch.autocast("cpu"):
        again = run()
    assert same(first, again) and not again[0][0].is_inference()
    assert random.getstate() == before[0] and torch.equal(torch.get_rng_state(), before[1])


def test_a_state_and_a_replay_have_the_same_mixtures():
    loader = DataLoader(dataset(), 4, num_workers=1, shuffle=True, collate_fn=by_global, record=True)
    whole = passes(loader, 1)
    loader.replay(loader.order())
    assert same(passes(loader, 1), whole)
    loader.replay(loader.order())
    part = iter(loader)
    next(part)
    state = loader.state_dict()
    other = DataLoader(dataset(), 4, num_workers=2, shuffle=True, collate_fn=by_global)
    other.load_state_dict(state)
    assert same(passes(other, 1), whole[1:])


def test_a_mixture_that_fails_costs_its_batch_alone():
    class Failing(torch.nn.Module):
        def forward(self, images, labels):
            raise ValueError("no mixture")

    loader = DataLoader(dataset(), 4, num_workers=1, collate_fn=by_closure(Failing()))
    assert "by 1 thread" in loader.explain()
    iterator = iter(loader)
    for _ in range(3):
        with pytest.raises(ValueError, match="no mixture"):
            next(iterator)
    assert next(iterator, None) is None


# --- what is not believed ---


class Noting(RandomMixUp):
    def forward(self, batch, target):
        self.last = batch
        return batch, target


class Printing(RandomMixUp):
    def forward(self, batch, target):
        print(batch.shape)
        return batch, target


class Saving(RandomMixUp):
    def forward(self, batch, target):
        torch.save(batch, "nowhere")
        return batch, target


class OfWorker(RandomMixUp):
    def forward(self, batch, target):
        return batch, target + torch.utils.data.get_worker_info().id


class Calling(RandomMixUp):
    def helper(self, batch):
        return batch

    def forward(self, batch, target):
        return self.helper(batch), target


class Holding(RandomMixUp):
    def __init__(self):
        super().__init__()
        self.p = identity

    def forward(self, batch, target):
        return self.p(batch), target


class Lambda(RandomMixUp):
    def forward(self, batch, target):
        return (lambda x: x)(batch), target


class OfModule(RandomMixUp):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Dropout()

    def forward(self, batch, target):
        return self.inner(batch), target


class Setting(RandomMixUp):
    def forward(self, batch, target):
        torch.set_grad_enabled(False)
        return batch, target


class Importing(RandomMixUp):
    def forward(self, batch, target):
        import os

        return batch, target + os.getpid()


class Plain:
    def __call__(self, batch, target):
        return batch, target


class SubMixUp(v2.MixUp):
    pass


def own_labels():
    return v2.MixUp(num_classes=N_CLASSES, labels_getter=lambda inputs: inputs[1])


def hooked():
    mix = RandomMixUp()
    mix.register_forward_hook(lambda *_: None)
    return mix


def mine(batch):
    return default_collate(batch)


def shadowed(default_collate):
    return lambda batch: MIX(*default_collate(batch))


REFUSED = [
    *(by_closure(mix) for mix in (Noting(), Printing(), Saving(), OfWorker(), Calling(), Holding(), Lambda(),
                                  OfModule(),
                                  Setting(), Importing(), Plain(), SubMixUp(num_classes=4), own_labels(), hooked(),
                                  identity, v2.RandomChoice([MIX, identity]), v2.RandomChoice([MIX, Noting()]))),
    shadowed(mine), mine, lambda batch: MIX(*mine(batch)), lambda batch: MIX(*default_collate(batch[1:])),
    lambda batch: MIX(*default_collate(batch))[0], lambda batch: MIX(*default_collate(MIX(*default_collate(batch)))),
    list, by_global.__call__,
]  # fmt: skip


@pytest.mark.parametrize("collate", REFUSED)
def test_refused(collate):
    assert lower_collate(collate) is None


def test_a_patched_default_collate(monkeypatch):
    monkeypatch.setattr(torch.utils.data, "default_collate", mine)
    assert lower_collate(lambda b: MIX(*torch.utils.data.default_collate(b))) is None


def test_a_patched_mixup(monkeypatch):
    monkeypatch.setattr(v2.MixUp, "transform", lambda self, inpt, params: inpt)
    assert lower_collate(by_global) is None


def test_a_name_that_is_not_there_yet():
    def collate_fn(batch):
        return later(*default_collate(batch))

    assert lower_collate(collate_fn) is None
    later = MIX
    assert lower_collate(collate_fn) is not None


def test_whatever_else_stands_in_the_way_is_said():
    """Else another collate_fn would be written in vain."""
    reason = "collate_fn (list) is Python code that gets single samples"
    assert DataLoader(dataset(), 4, num_workers=1, collate_fn=list).explain().rstrip().endswith(reason)
    text = DataLoader(torch.arange(6), 4, num_workers=1, collate_fn=list).explain()
    assert f"{reason}; besides, Tensor: drapps has no native form of it" in text
    text = DataLoader(cifar(6, identity), 4, num_workers=1, collate_fn=list).explain()
    assert f"{reason}; besides, some transforms run in Python" in text
