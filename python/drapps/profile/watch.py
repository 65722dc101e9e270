"""Watches the loaders of a program: each iterator is wrapped and goes through the phases of a session.

phases: warm up │ as it is │ free: batches that are there already │ fewer workers, where there are many
        │ swapped: drapps.DataLoader in place of torch's │ probes

"As it is" and "free" are repeated if the load of the machine changed between them.  In the free phase the consumer gets
batches that it had before, in the swapped phase those of another pass: it makes some additional steps, and no batch of
the loader is lost.  The first loader that completes all phases ends the run.
"""

import functools
import sys
import threading
import weakref
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

from drapps.profile.session import Session

OWN_HOME, TORCH_HOME = "drapps.torch.dataloader", "torch.utils.data.dataloader"


class Watched:
    """The wrapper of a loader's iterator."""

    def __init__(self, session, iterator):
        self._session, self._watched = session, iterator

    def __iter__(self):
        return self

    def __next__(self):
        return self._session.take(self._watched)

    def __len__(self):
        return len(self._watched)

    def __getattr__(self, name):
        return getattr(self._watched, name)


class Watch:
    """The sessions of a program's loaders.  plan: seconds of the phases; stop: end the program after them."""

    def __init__(self, host, plan, stop):
        self.host, self.plan, self.stop = host, plan, stop
        self._sessions = {}  # by data and settings
        self.opened = weakref.WeakKeyDictionary()  # native loader: the arguments it was opened with
        self.torchs = weakref.WeakKeyDictionary()  # torch's loader: the arguments and options it was made with
        # Set while a loader of torch iterates a native one, which is not the program's.
        self._inside = threading.local()

    def main_session(self):
        """Return the session that took most of the time; None if no loader was iterated."""
        return max(self._sessions.values(), key=lambda session: (session.finished, session.time), default=None)

    def gave_again(self):
        """Return whether the program got batches a second time."""
        return any(session.gave_again for session in self._sessions.values())

    def _wrap(self, loader, iterator):
        what = self._what(loader)
        if what not in self._sessions:
            self._sessions[what] = Session(self)
        self._sessions[what].use(loader)
        return Watched(self._sessions[what], iterator)

    def _what(self, loader):
        """Return a key of data and settings: a loader that is opened again for each epoch has the same key."""
        if loader in self.opened:
            dataset, graph, options = self.opened[loader]
            return dataset.name, graph.json(), repr(options)
        dataset = getattr(loader, "dataset", None)
        if dataset is None:
            return repr(loader)  # a chain with its functions' names
        return type(dataset), len(dataset) if hasattr(dataset, "__len__") else None, loader.batch_size

    # --- hooks ---

    @contextmanager
    def hooked(self):
        """Watch loaders inside the with block; those of torch from the import of torch on."""
        from drapps import loader as home

        undo = [self._hook(home.LoaderBase, "_begin"), self._hook_opening(home.Loader)]
        finders = [
            _After(OWN_HOME, lambda module: undo.append(self._hook(module.DataLoader, "__iter__"))),
            _After(TORCH_HOME, lambda module: undo.extend(self._hook_torch(module.DataLoader))),
        ]
        for finder in finders:
            if finder.name in sys.modules:
                finder.found(sys.modules[finder.name])
            sys.meta_path.insert(0, finder)
        try:
            yield self
        finally:
            for finder in finders:
                sys.meta_path.remove(finder)
            for step in reversed(undo):
                step()

    def _hook(self, owner, name):
        original = getattr(owner, name)

        def begin(loader, *args):
            depth = getattr(self._inside, "depth", 0)
            self._inside.depth = depth + 1
            try:
                iterator = original(loader, *args)
            finally:
                self._inside.depth = depth
            return iterator if depth else self._wrap(loader, iterator)

        setattr(owner, name, begin)
        return lambda: setattr(owner, name, original)

    def _hook_opening(self, owner):
        original = owner.__init__

        def opened(loader, dataset, graph, output="auto", **options):
            original(loader, dataset, graph, output, **options)
            self.opened[loader] = dataset, graph, options

        owner.__init__ = opened
        return lambda: setattr(owner, "__init__", original)

    def _hook_torch(self, owner):
        """Hook torch's DataLoader.  drapps.DataLoader is a subclass with its own hook, outside of this one."""
        original = owner.__init__

        @functools.wraps(original)
        def made(loader, *args, **options):
            original(loader, *args, **options)
            own = sys.modules.get(OWN_HOME)
            if own is None or not isinstance(loader, own.DataLoader):
                self.torchs[loader] = args, options

        owner.__init__ = made
        return [lambda: setattr(owner, "__init__", original), self._hook(owner, "__iter__")]

    @contextmanager
    def resting(self):
        """Watch no loader in this thread inside the with block."""
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        try:
            yield
        finally:
            self._inside.depth -= 1


class _After(MetaPathFinder):
    """Calls a function with a module after its import."""

    def __init__(self, name, found):
        self.name, self.found = name, found

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def then(module):
                execute(module)
                self.found(module)

            spec.loader.exec_module = then
        return spec


