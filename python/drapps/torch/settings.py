"""What the user asked for, as a trace tells it."""

from torch.utils import data

from drapps.torch.identity import length_of


def settings_of(loader):
    """The arguments that say which samples come, and in which order; plain values."""
    own = loader.batch_sampler if type(loader.batch_sampler).__module__.split(".")[0] not in ("torch", "drapps") else None
    return {
        "batch_size": loader.batch_size,
        "shuffle": own is None and isinstance(loader.sampler, data.RandomSampler),
        "sampler": type(own or loader.sampler).__name__,
        "drop_last": loader.drop_last,
        "in_order": bool(loader.in_order),
        "seed": loader.seed,
        "on_bad_sample": loader.on_bad_sample,
        "rank": loader.rank,
        "world": loader.world_size,
    }


def samples_of_pass(loader):
    """Samples of a whole pass of this rank; None where the sampler does not tell, or forms batches of its own."""
    if type(loader.batch_sampler) is not data.BatchSampler:
        return None
    n_samples = length_of(loader.sampler)
    return n_samples - n_samples % loader.batch_size if n_samples and loader.drop_last else n_samples
