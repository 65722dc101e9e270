"""Callbacks that tell loaders when a trainer evaluates or saves: lightning_callback(), transformers_callback().

    trainer = Trainer(callbacks=[lightning_callback(loader)])
"""

import importlib
import sys
from contextlib import ExitStack


class _Pause:
    """A pause of some loaders, begun and ended any number of times."""

    def __init__(self, loaders):
        self._loaders, self._stack = loaders, ExitStack()
        self._on = False

    def begin(self):
        if not self._on:
            self._on = True
            for loader in self._loaders:
                self._stack.enter_context(loader.pause())

    def end(self):
        self._on = False
        self._stack.close()


def lightning_callback(*loaders):
    """Return a Callback of Lightning: the loaders pause while the trainer validates.

    loaders: what has pause(): a drapps.DataLoader or a loader of a pipeline.
    """
    name = "lightning.pytorch" if "lightning.pytorch" in sys.modules else "pytorch_lightning"
    pause = _Pause(loaders)

    class PauseLoaders(importlib.import_module(name).Callback):
        def on_validation_start(self, trainer, pl_module):
            pause.begin()

        def on_validation_end(self, trainer, pl_module):
            pause.end()

        def on_exception(self, trainer, pl_module, exception):
            pause.end()

    return PauseLoaders()


def transformers_callback(*loaders):
    """Return a TrainerCallback of Hugging Face's transformers: the loaders pause while it evaluates or saves.

    loaders: as for lightning_callback().
    """
    pause = _Pause(loaders)

    class PauseLoaders(importlib.import_module("transformers").TrainerCallback):
        def on_step_begin(self, args, state, control, **more):
            pause.end()

        def on_step_end(self, args, state, control, **more):
            if control.should_evaluate or control.should_save:
                pause.begin()

        on_epoch_end = on_step_end

        def on_epoch_begin(self, args, state, control, **more):
            pause.end()

        def on_train_end(self, args, state, control, **more):
            pause.end()

    return PauseLoaders()
