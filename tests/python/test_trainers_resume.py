"""Trainers go on from their own checkpoints with the samples that would have come, whether they restore or skip."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch")

from trainer_parts import Classifier, Points, lightning_model, lightning_trainer

import drapps

N, BATCH, EPOCHS = 20, 4, 2
WORKERS = (0, 2)
MIDDLES = (3, 7)  # steps in the first and in the second epoch
GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "pytorch.md"


def make(workers, **more):
    return drapps.DataLoader(Points(N), batch_size=BATCH, shuffle=True, num_workers=workers, **more)


def check_whole(keys, epochs=EPOCHS):
    for epoch in range(epochs):
        assert sorted(keys[epoch * N : (epoch + 1) * N]) == list(range(N))
    assert len(keys) == epochs * N


# --- Lightning: the loader's state is in its checkpoints ---


@pytest.fixture
def checkpoints():
    return pytest.importorskip("pytorch_lightning.callbacks").ModelCheckpoint


def fit(loader, saver, ckpt=None, validation=None, **more):
    """The keys of a run."""
    model = lightning_model()
    trainer = lightning_trainer(enable_checkpointing=True, callbacks=[saver], **{"max_epochs": EPOCHS, **more})
    trainer.fit(model, loader, validation, ckpt_path=ckpt)
    assert trainer.train_dataloader is loader
    assert loader.stats()["samples"] == len(model.model.keys)
    return model.model.keys


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("step", MIDDLES)
def test_lightning_in_the_middle_of_an_epoch(checkpoints, tmp_path, step, workers):
    saver = checkpoints(tmp_path, filename="{step}", every_n_train_steps=step, save_top_k=-1)
    whole = fit(make(workers, seed=5), saver)
    check_whole(whole)
    rest = fit(make(2 - workers, seed=5), checkpoints(tmp_path / "again"), tmp_path / f"step={step}.ckpt")
    assert rest == whole[step * BATCH :]


def test_lightning_at_the_end_of_an_epoch(checkpoints, tmp_path):
    """It loads no state there: the next epoch begins a pass."""
    fit(make(0), checkpoints(tmp_path, filename="{step}", save_top_k=-1), max_epochs=1)
    rest = fit(make(0), checkpoints(tmp_path / "again"), tmp_path / "step=5.ckpt")
    check_whole(rest, epochs=1)


def test_lightning_after_the_validation_of_an_epoch(checkpoints, tmp_path):
    """After the last batch, before the end of the epoch."""
    saver = checkpoints(tmp_path, filename="{step}", save_top_k=-1, save_on_train_epoch_end=False)
    whole = fit(make(0, seed=5), saver, validation=make(0))
    rest = fit(make(0, seed=5), checkpoints(tmp_path / "again"), tmp_path / "step=5.ckpt", validation=make(0))
    assert rest == whole[N:]


@pytest.mark.xfail(reason="Lightning takes what is left, nothing, for the next epoch, with torchdata's loader, too")
def test_lightning_at_the_last_batch_of_an_epoch(checkpoints, tmp_path):
    whole = fit(make(0, seed=5), checkpoints(tmp_path, filename="{step}", every_n_train_steps=5, save_top_k=-1))
    rest = fit(make(0, seed=5), checkpoints(tmp_path / "again"), tmp_path / "step=5.ckpt")
    assert rest == whole[N:]


# --- Accelerate ---


@pytest.fixture
def accelerate():
    return pytest.importorskip("accelerate")


def prepared(accelerate, loader, **config):
    """(accelerator, model, loader) of a program that was started anew."""
    config = accelerate.DataLoaderConfiguration(**config)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=config)
    return accelerator, *accelerator.prepare(Classifier(), loader)


def run(accelerate, loader, folder, step, **config):
    """The keys of all epochs; after a step, the accelerator saves its state."""
    accelerator, model, loader = prepared(accelerate, loader, **config)
    for epoch in range(EPOCHS):
        loader.set_epoch(epoch)
        for batch in loader:
            model(**batch)
            if len(model.keys) == step * BATCH:
                accelerator.save_state(folder)
    check_whole(model.keys)
    return model.keys


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("step", MIDDLES)
def test_accelerate_skips(accelerate, tmp_path, step, workers):
    """It has no states of loaders by default: the order follows from a seed and the epoch, and batches are skipped."""
    config = {"use_seedable_sampler": True, "data_seed": 3}
    whole = run(accelerate, make(workers), tmp_path, step, **config)
    accelerator, model, loader = prepared(accelerate, make(2 - workers), **config)
    accelerator.load_state(tmp_path)
    epoch, done = divmod(step, N // BATCH)
    loader.set_epoch(epoch)
    rest = accelerator.skip_first_batches(loader, done)
    for batch in rest:
        model(**batch)
    assert isinstance(rest.base_dataloader, drapps.DataLoader)
    assert model.keys == whole[step * BATCH : (epoch + 1) * N]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("step", [*MIDDLES, 5])
def test_accelerate_with_states(accelerate, tmp_path, step, workers):
    """use_stateful_dataloader: the loader stays drapps's, with or without torchdata, and its state goes along."""
    whole = run(accelerate, make(workers, seed=5), tmp_path, step, use_stateful_dataloader=True)
    accelerator, model, loader = prepared(accelerate, make(2 - workers, seed=5), use_stateful_dataloader=True)
    accelerator.load_state(tmp_path)
    for batch in loader:
        model(**batch)
    assert isinstance(loader.base_dataloader, drapps.DataLoader) and loader.use_stateful_dataloader
    assert model.keys == whole[step * BATCH : (step // 5 + 1) * N]


def test_accelerate_refuses_the_state_of_another_data_set(accelerate, tmp_path):
    config = {"use_stateful_dataloader": True}
    one, other = (torch.utils.data.TensorDataset(torch.full((N,), x)) for x in (1, 2))
    accelerator, *_ = prepared(accelerate, drapps.DataLoader(one, BATCH, num_workers=0), **config)
    accelerator.save_state(tmp_path)
    accelerator, *_ = prepared(accelerate, drapps.DataLoader(other, BATCH, num_workers=0), **config)
    with pytest.raises(ValueError, match="another data set"):
        accelerator.load_state(tmp_path)


def test_accelerate_makes_of_torchs_loader_what_it_always_made(accelerate):
    prepared(accelerate, make(0), use_stateful_dataloader=True)
    theirs = torch.utils.data.DataLoader(Points(N), batch_size=BATCH)
    try:
        from torchdata.stateful_dataloader import StatefulDataLoader
    except ImportError:
        with pytest.raises(ImportError, match="torchdata"):
            prepared(accelerate, theirs, use_stateful_dataloader=True)
    else:
        *_, loader = prepared(accelerate, theirs, use_stateful_dataloader=True)
        assert type(loader.base_dataloader) is StatefulDataLoader


# --- Hugging Face Trainer, as the guide says ---


@pytest.fixture
def guided():
    """The Trainer of docs/pytorch.md."""
    pytest.importorskip("transformers")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names = {}
    exec(next(block for block in blocks if "get_train_dataloader" in block), names)
    return names["Trainer"]


def hugging_face(trainer, folder, **more):
    from transformers import TrainingArguments

    arguments = TrainingArguments(output_dir=str(folder), num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH,
                                  use_cpu=True, report_to=[], disable_tqdm=True, **more)
    return trainer(model=Classifier(), args=arguments, train_dataset=Points(N))


def test_the_guides_trainer_has_a_drapps_loader(guided, tmp_path):
    trainer = hugging_face(guided, tmp_path, save_strategy="no")
    assert isinstance(trainer.get_train_dataloader().base_dataloader, drapps.DataLoader)
    trainer.train()
    check_whole(trainer.model.keys)


@pytest.mark.parametrize("step", [*MIDDLES, 5])
def test_hugging_face_resumes(guided, tmp_path, step):
    """It sets the epoch and skips batches."""
    whole = hugging_face(guided, tmp_path, save_strategy="steps", save_steps=step)
    whole.train()
    rest = hugging_face(guided, tmp_path / "again", save_strategy="no")
    rest.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{step}"))
    assert rest.model.keys == whole.model.keys[step * BATCH :]
