"""Trainers take drapps.DataLoader as it is: the loader they used in the end is one, and its count is right."""

import contextlib
import inspect
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from trainer_parts import Classifier, Points, lightning_model, lightning_trainer, train

import drapps
from drapps.torch.workers import same_kind

HERE = pathlib.Path(__file__).parent
N, EPOCHS = 20, 2
WORKERS = (0, 2)


def make(workers, **more):
    return drapps.DataLoader(Points(N), batch_size=4, shuffle=True, num_workers=workers, **more)


def check(loader, keys, epochs=EPOCHS):
    """The loader that was used is drapps's own, every sample came once an epoch, and its counter agrees."""
    assert isinstance(loader, drapps.DataLoader)
    assert sorted(keys) == sorted(list(range(N)) * epochs)
    assert loader.stats()["samples"] == len(keys)


@pytest.mark.parametrize("workers", WORKERS)
def test_plain_loop(workers):
    model, loader = Classifier(), make(workers)
    for _ in range(EPOCHS):
        train(model, loader)
    check(loader, model.keys)


# --- seeds ---


def shown(loader):
    """The arguments with which a trainer makes a loader anew, from what another one shows."""
    names = inspect.signature(drapps.DataLoader).parameters
    found = {name: value for name, value in vars(loader).items() if name in names and names[name].default is not value}
    return {name: value for name, value in found.items() if name not in ("batch_size", "sampler", "drop_last")}


def keys_of(loader):
    return [key for batch in loader for key in batch["key"].tolist()]


def test_a_loader_that_is_made_anew_keeps_its_seed():
    """As Lightning does it, with all that the loader shows."""
    found = []
    for seed in (7, 8):
        loader, again = make(0, seed=seed), drapps.DataLoader(**shown(make(0, seed=seed)))
        found.append([keys_of(again) for _ in range(EPOCHS)])
        assert found[-1] == [keys_of(loader) for _ in range(EPOCHS)]
    assert found[0] != found[1]


def test_the_generator_of_a_seed_is_handed_on_seeded():
    """As Accelerate does it, without the seed."""
    for seed in (7, 8):
        old = make(0, seed=seed)
        new = same_kind(old.dataset, batch_sampler=old.batch_sampler, num_workers=old.num_workers,
                                generator=old.generator)  # fmt: skip
        assert keys_of(new) == keys_of(make(0, seed=seed))


# --- Lightning ---


@pytest.fixture
def lightning():
    return pytest.importorskip("pytorch_lightning")


@pytest.mark.parametrize("workers", WORKERS)
def test_lightning_fit(lightning, workers):
    model, trainer = lightning_model(), lightning_trainer(max_epochs=EPOCHS)
    loader = make(workers)
    trainer.fit(model, loader)
    assert trainer.train_dataloader is loader
    check(trainer.train_dataloader, model.model.keys)


def test_lightning_takes_the_loader_from_a_hook(lightning):
    model, trainer = lightning_model(lambda: make(2)), lightning_trainer(max_epochs=EPOCHS)
    trainer.fit(model)
    check(trainer.train_dataloader, model.model.keys)


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("workers", [0, 3])
def test_lightning_builds_the_same_loader_to_predict(lightning, workers, seed):
    """It makes a new loader from the attributes of the old one, to note the indices of its batches."""
    model, trainer = lightning_model(), lightning_trainer()
    loader = make(workers, on_bad_sample="skip", max_bad=7, seed=seed)
    outputs = trainer.predict(model, loader)
    used = trainer.predict_dataloaders
    assert used is not loader and sum(len(batch) for batch in outputs) == N
    assert (used.num_workers, used.on_bad_sample, used.max_bad) == (workers, "skip", 7)
    check(used, model.model.keys, epochs=1)


# --- Accelerate ---


@pytest.fixture
def accelerator():
    return pytest.importorskip("accelerate").Accelerator(cpu=True)


@pytest.mark.parametrize("workers", WORKERS)
def test_accelerate(accelerator, workers):
    model = Classifier()
    loader = accelerator.prepare(make(workers, on_bad_sample="skip"))
    assert isinstance(loader.base_dataloader, drapps.DataLoader)
    assert (loader.base_dataloader.num_workers, loader.base_dataloader.on_bad_sample) == (workers, "skip")
    for _ in range(EPOCHS):
        train(model, loader)
    check(loader, model.keys)


def test_accelerate_keeps_the_seed(accelerator):
    orders = [keys_of(accelerator.prepare(make(0, seed=seed))) for seed in (7, 8, 7)]
    assert orders[0] == orders[2] == keys_of(make(0, seed=7)) != orders[1]


def test_accelerate_keeps_a_number_of_workers_that_drapps_decided(accelerator):
    loader = drapps.DataLoader(Points(N), batch_size=4)
    assert accelerator.prepare(loader).base_dataloader.num_workers == loader.num_workers


def test_accelerate_skips_batches(accelerator):
    """What a trainer does that goes on in the middle of an epoch."""
    model = Classifier()
    rest = accelerator.skip_first_batches(accelerator.prepare(make(2)), 3)
    train(model, rest)
    assert isinstance(rest, drapps.DataLoader)
    assert rest.stats()["samples"] == len(model.keys) == len(set(model.keys)) == N - 12


def test_accelerate_leaves_torchs_loader_alone(accelerator):
    accelerator.prepare(make(0))
    prepared = accelerator.prepare(torch.utils.data.DataLoader(Points(N), batch_size=4))
    assert type(prepared.base_dataloader) is torch.utils.data.DataLoader
    assert sum(len(batch["key"]) for batch in prepared) == N


# --- Hugging Face Trainer ---


@pytest.mark.parametrize("workers", WORKERS)
def test_hugging_face_trainer(tmp_path, workers):
    transformers = pytest.importorskip("transformers")

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            self.loader = self.accelerator.prepare(make(workers))
            return self.loader

    model = Classifier()
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), num_train_epochs=EPOCHS, use_cpu=True,
                                               report_to=[], save_strategy="no", disable_tqdm=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=Points(N))
    trainer.train()
    check(trainer.loader, model.keys)


# --- two ranks ---


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_ranks(ways):
    """What two processes of rank_program.py tell."""
    env = {**os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": str(free_port()), "TORCHELASTIC_RUN_ID": "test", "GROUP_RANK": "0"}
    command = [sys.executable, HERE / "rank_program.py", *ways]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)]
    try:
        said = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    lines = [[line for line in out.splitlines() if line.startswith("RESULT ")] for out, _ in said]
    assert all(lines), "\n".join(err[-2000:] for _, err in said)
    return [json.loads(line[-1].removeprefix("RESULT ")) for line in lines]


WAYS = ("sampler", "auto", "accelerate", "lightning")


@pytest.fixture(scope="module")
def ranks():
    pytest.importorskip("accelerate")
    pytest.importorskip("pytorch_lightning")
    return run_ranks(WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_ranks_share_the_epoch(ranks, way):
    import rank_program

    n, epochs = rank_program.N, rank_program.EPOCHS
    parts = [rank[way] for rank in ranks]
    for part in parts:
        assert part["ours"]
        assert part["counted"] == len(part["keys"]) == n * epochs // 2
    for epoch in range(epochs):
        half = slice(epoch * n // 2, (epoch + 1) * n // 2)
        assert sorted(parts[0]["keys"][half] + parts[1]["keys"][half]) == list(range(n))


# --- pauses ---


class Paused:
    """Stands for a loader that knows whether it is paused."""

    def __init__(self):
        self.on = 0

    @contextlib.contextmanager
    def pause(self):
        self.on += 1
        try:
            yield
        finally:
            self.on -= 1


def test_lightning_tells_of_validation():
    pytest.importorskip("pytorch_lightning")
    from drapps.torch.trainer_pauses import lightning_callback

    paused, model, in_training, in_validation = Paused(), lightning_model(), [], []
    model.on_train_batch_start = lambda *_: in_training.append(paused.on)
    model.on_validation_batch_end = lambda *_: in_validation.append(paused.on)
    trainer = lightning_trainer(max_epochs=2, callbacks=[lightning_callback(paused)], num_sanity_val_steps=0)
    trainer.fit(model, make(0), make(0))
    assert set(in_validation) == {1} and set(in_training) == {0} and paused.on == 0


def test_transformers_tell_of_evaluation(tmp_path):
    transformers = pytest.importorskip("transformers")
    from drapps.torch.trainer_pauses import transformers_callback

    paused = Paused()

    class Model(Classifier):
        def forward(self, x, labels, key):
            (in_training if self.training else in_evaluation).append(paused.on)
            return super().forward(x, labels, key)

    in_training, in_evaluation = [], []
    args = transformers.TrainingArguments(str(tmp_path), num_train_epochs=2, eval_strategy="steps", eval_steps=3,
                                          report_to=[], use_cpu=True, save_strategy="no",
                                          remove_unused_columns=False)  # fmt: skip
    trainer = transformers.Trainer(Model(), args, train_dataset=Points(N), eval_dataset=Points(N),
                                   callbacks=[transformers_callback(paused)])  # fmt: skip
    trainer.train()
    assert set(in_evaluation) == {1} and set(in_training) == {0} and paused.on == 0
