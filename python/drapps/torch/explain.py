"""DataLoader.explain(): what runs where, in words."""

from drapps.torch import init_fns


def text(loader):
    """One line for each part."""
    return "\n".join([_data(loader), _order(loader), _batches(loader), *_work(loader)]) + "\n"


def _name(thing):
    return getattr(thing, "__qualname__", None) or type(thing).__qualname__


def _data(loader):
    return f"data: {_name(loader.dataset)}, {'iterable' if loader._iterable else 'map-style'}"


def _order(loader):
    ranks = f", rank {loader.rank} of {loader.world_size}" if loader.world_size > 1 else ""
    kept = "in this order" if loader.in_order or loader.num_workers == 0 else "as they are ready"
    return f"order: {_name(loader._index_sampler)} of {_name(loader.sampler)}{ranks}; delivered {kept}"


def _batches(loader):
    if not loader._auto_collation:
        return f"batches: none, samples through {_name(loader.collate_fn)}"
    size = "of the sampler's size" if loader.batch_size is None else f"of {loader.batch_size}"
    return f"batches: {size}, by {_name(loader.collate_fn)}"


def _work(loader):
    n = loader.num_workers
    plan = None if loader._iterable or n == 0 else loader._lowered()
    native = plan is not None and plan.is_native
    why = None if native or (loader._iterable and n) else loader._why_no_processes()
    if n == 0 or why:
        yield f"runs: in the caller ({f'{why}; num_workers=n starts processes' if why else 'num_workers=0'})"
        return
    where = f"by {n} threads, natively" if native else f"in {n} worker processes"
    yield f"runs: {where} ({'decided' if n.decided else 'given'}), {loader.prefetch_factor * n} batches under way"
    if plan:
        yield from plan.lines
    if not init_fns.harmless(loader.worker_init_fn):
        yield "worker_init_fn may change the data set, so batches are not made natively"
