"""DataLoader.explain(): what runs where, in words."""

from drapps import cached
from drapps.counted import counted
from drapps.passes.order import sampler_chain


def text(loader):
    """One line for each part."""
    return "\n".join([_data(loader), _order(loader), _batches(loader), *_work(loader)]) + "\n"


def name_of(thing):
    """A class, function or object, in a line of text."""
    return getattr(thing, "__qualname__", None) or type(thing).__qualname__


def _data(loader):
    return f"data: {name_of(loader.dataset)}, {'iterable' if loader._iterable else 'map-style'}"


def _order(loader):
    ranks = f", rank {loader.rank} of {loader.world_size}" if loader.world_size > 1 else ""
    kept = "in this order" if loader.in_order or loader.num_workers == 0 else "as they are ready"
    samplers = " of ".join(name_of(sampler) for sampler in sampler_chain(loader._index_sampler))
    return f"order: {samplers}{ranks}; delivered {kept}"


def _batches(loader):
    if not loader._auto_collation:
        return f"batches: none, samples through {name_of(loader.collate_fn)}"
    size = "of the sampler's size" if loader.batch_size is None else f"of {loader.batch_size}"
    return f"batches: {size}, by {name_of(loader.collate_fn)}"


def _work(loader):
    n = loader.num_workers
    plan = None if loader._iterable or n == 0 else loader._lowered()
    native = plan is not None and plan.is_native
    why = None if native or (loader._iterable and n) else loader._why_no_processes()
    if n == 0 or why:
        yield f"runs: in the caller ({f'{why}; num_workers=n starts processes' if why else 'num_workers=0'})"
        yield from _cache(loader, None)
        return
    where = (
        f"by {counted(n, 'thread')}, natively" if native else f"in {counted(n, 'worker process', 'worker processes')}"
    )
    ahead = loader._tuning.overrides.get("prefetch", loader.prefetch_factor * n)
    yield f"runs: {where} ({'chosen by drapps' if n.decided else 'given'}), {ahead} batches in flight"
    if plan:
        yield from plan.lines
    yield from _cache(loader, plan)


# --- the cache ---


def _cache(loader, plan):
    """What is kept and where, or why nothing.  plan: None where no part is native."""
    if loader.cache is None and not loader.cache_memory:
        return
    if plan is not None and plan.is_native:
        yield _of_engine(loader, plan)
        return
    kind = type(loader.dataset)
    marked = sorted({name for base in kind.__mro__ for name, value in vars(base).items() if cached.is_marked(value)})
    yield (f"cache: keeps in {cached.folder_text(loader.cache)} the results of functions marked with "
           f"drapps.deterministic; {name_of(loader.dataset)} has {', '.join(marked) or 'none'}")  # fmt: skip
    if plan is not None and plan.dataset is not loader.dataset:
        yield "  results of the native ops before Python code are not kept"


def _of_engine(loader, plan):
    """As the native loader says it, which is opened by the first pass."""
    native = loader._counters.native if loader._counters.plan is plan else None
    said = native.explain().splitlines() if native is not None and not native._core.closed else ()
    begun = [line for line in said if line.startswith("cache")]
    if begun:
        return "\n".join(begun)
    return (f"cache: keeps in {cached.folder_text(loader.cache)} the results of the ops before the first random one; "
            "they are listed here when a pass has begun")  # fmt: skip
