"""Watching the loaders of a program: each iterator of theirs is wrapped, and goes through the phases of a session.

phases: warm up │ as it is │ free: batches that are there already │ fewer workers, where there are many
        │ swapped: drapps' loader in the place of torch's │ probes

As it is and free are repeated where they cannot be of one load.  In the free phase the trainer gets batches that it had
before, in the swapped one those of another pass: it makes some steps more than without, and no batch of the loader is
lost.  Only the first loader that gets through all phases ends the run.
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
    """An iterator of a loader, for whoever iterates it."""

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
    """Sessions of the loaders that a program iterates.  plan: seconds of the phases; stop: end the program after."""

    def __init__(self, host, plan, stop):
        self.host, self.plan, self.stop = host, plan, stop
        self._sessions = {}  # by what is loaded
        self.opened = weakref.WeakKeyDictionary()  # native loader: what it was opened with
        self.torchs = weakref.WeakKeyDictionary()  # torch's own loader: arguments and options it was made with
        self._inside = threading.local()  # a loader of torch iterates a native one, which is not the program's

    def main_session(self):
        """The one that took most of the time; None: nothing was iterated."""
        return max(self._sessions.values(), key=lambda session: (session.finished, session.time), default=None)

    def gave_again(self):
        """Whether the program got batches that it had before."""
        return any(session.gave_again for session in self._sessions.values())

    def _wrap(self, loader, iterator):
        what = self._what(loader)
        if what not in self._sessions:
            self._sessions[what] = Session(self)
        self._sessions[what].use(loader)
        return Watched(self._sessions[what], iterator)

    def _what(self, loader):
        """A loader that is opened anew for each epoch is the same."""
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
        """Loaders are watched inside; those of torch once somebody imports them."""
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
        """torch's own DataLoader.  drapps', which is one of these, is hooked by itself, and this is inside of it."""
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
        """Nothing is watched inside, in this thread."""
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        try:
            yield
        finally:
            self._inside.depth -= 1


class _After(MetaPathFinder):
    """Calls a function with a module when it was imported."""

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


