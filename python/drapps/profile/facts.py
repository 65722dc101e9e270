"""Facts: what is known of a run.  None: not measured; rules that need it stay silent."""

from dataclasses import asdict, dataclass, field

WITHIN = 1.1  # a trainer that never waits may be a little faster than its steps say: caches stay warm


@dataclass
class Facts:
    """Times are seconds, rates samples a second, shares between 0 and 1."""

    # --- the run as it is ---
    seconds: float = 0.0
    batches: int = 0
    samples: int = 0
    wait: float = 0.0  # share of the time in which the trainer waited for a batch
    step: float = 0.0  # the trainer's own time for a batch
    workers: int | None = None
    readers: int | None = None  # threads that only read; None or 0: workers read
    prefetch: int | None = None
    bytes: float | None = None  # encoded, of a sample
    device_bytes: float | None = None  # of these, what came from a device and not from the page cache
    read: float | None = None  # of a worker for a sample
    work: float | None = None  # the same for decoding and augmenting
    ahead: float | None = None  # batches that the memory limit allows
    files: bool | None = None  # each sample is a file

    # --- the machine meanwhile ---
    cpus: float | None = None  # that the process may use
    host_cpus: float | None = None  # that it might use without a quota
    cpu_own: float | None = None  # CPUs in use
    cpu_foreign: float | None = None
    cpu_steal: float | None = None
    delayed: float | None = None  # share of the time of own runnable threads in which they waited for a CPU
    throttled: float | None = None
    disk_busy: float | None = None
    disk_latency: float | None = None

    # --- other runs ---
    free_rate: float | None = None  # the trainer's, with batches that were there already
    free_cpu: float | None = None  # CPU time of the trainer for a sample, then
    drain_rate: float | None = None  # the loader's without a trainer
    drain_cpu: float | None = None  # CPU time for a sample, then
    unlimited_rate: float | None = None  # the same rate without a memory limit
    memory_rate: float | None = None  # ... with a few samples, which are in memory then
    usual_rate: float | None = None  # ... with samples that are not slow
    lighter_rate: float | None = None  # ... without the op that takes most
    lighter_cpu: float | None = None  # CPU time for a sample, then
    fewer_workers: int | None = None
    fewer_rate: float | None = None  # the run with so few workers
    fewer_delayed: float | None = None
    swapped_rate: float | None = None  # the run with drapps' DataLoader in the place of torch's
    swapped_wait: float | None = None  # share of the time in which the trainer waited, then
    swapped_native: bool | None = None  # the engine made the batches

    # --- samples one by one, nothing else running ---
    alone: float | None = None  # for a sample
    alone_cpu: float | None = None  # CPU time of that
    again: float | None = None  # the same samples a second time: now they are in memory
    again_cpu: float | None = None
    blocked: float | None = None  # of Python code for a sample: neither on a CPU nor in line for one
    blocked_in: str = ""  # the function in which that is most; "": there is no Python code
    slow_samples: float | None = None  # share of samples that take four times the median or more
    slow_load: float | None = None  # their share of the time
    slow_key: str = ""  # one of them
    ops: dict = field(default_factory=dict)  # share of the time of each op
    notes: list = field(default_factory=list)

    @property
    def rate(self):
        """Samples a second, as it is."""
        return self.samples / self.seconds if self.seconds else 0.0

    @property
    def batch_samples(self):
        """Samples of a batch."""
        return self.samples / self.batches if self.batches else 0.0

    @property
    def trainer_rate(self):
        """What the trainer could take: measured with batches that were there, else by the time of its steps.  No less
        than it took, and no more than without the waiting that was measured."""
        if self.free_rate:
            most = self.rate / max(1 - self.wait, 1e-6) if self.wait else float("inf")
            return max(min(self.free_rate, WITHIN * most), self.fewer_rate or 0.0, self.swapped_rate or 0.0, self.rate)
        return max(self.batch_samples / self.step, self.swapped_rate or 0.0) if self.step else float("inf")

    @property
    def headroom(self):
        """Gain with data that is always there: what all remedies together can bring at most."""
        return max(1.0, self.trainer_rate / self.rate) if self.rate else 1.0

    @property
    def largest_op(self):
        """(name, share of the time) of the op that takes most; ("", 0) where ops were not timed."""
        return max(self.ops.items(), key=lambda item: item[1], default=("", 0.0))

    @property
    def cost_cpu(self):
        """CPU time of the loader for a sample."""
        return first(self.drain_cpu, self.again_cpu, self.alone_cpu)

    @property
    def waiting(self):
        """Time of a worker for a sample in which it waits for its bytes: measured in the run, else alone."""
        if self.read is not None:
            return self.read
        return rest(self.alone, self.alone_cpu)

    @property
    def waiting_again(self):
        """The same for bytes that are in memory."""
        return rest(self.again, self.again_cpu)

    @property
    def working(self):
        """Time of a worker for a sample in which it decodes and augments: measured in the run, else by its CPU time and
        the part of the time in which threads that want a CPU have one."""
        if self.work is not None or self.alone_cpu is None:
            return self.work
        return self.alone_cpu / max(0.05, 1 - (self.delayed or 0.0))

    @property
    def read_share(self):
        """The part of their time in which those who read wait for bytes: workers, or readers where there are some."""
        if self.waiting is None or not self.working:
            return None
        if self.readers:
            return min(1.0, self.rate * self.waiting / self.readers)
        return self.waiting / (self.waiting + self.working)

    @property
    def busy(self):
        """The part of the workers' time in which they are at a sample."""
        if None in (self.waiting, self.working) or not self.workers:
            return None
        return min(1.0, self.rate * (self.working + (0.0 if self.readers else self.waiting)) / self.workers)

    @property
    def strained(self):
        """How much of workers or CPUs, whichever is scarcer, the loader's work takes."""
        cpu = self.rate * self.cost_cpu / self.cpus if self.cost_cpu and self.cpus else None
        known = [value for value in (self.busy, cpu) if value is not None]
        return min(1.0, max(known)) if known else None

    def as_dict(self):
        """For JSON: what is known, and what follows from it."""
        known = {key: value for key, value in asdict(self).items() if value is not None}
        trainer = None if self.trainer_rate == float("inf") else self.trainer_rate
        return {**known, "rate": self.rate, "trainer_rate": trainer}


def first(*values):
    """The first that is known."""
    return next((value for value in values if value is not None), None)


def rest(whole, part):
    """What is left of a time; None where one of both is not known."""
    return None if whole is None or part is None else max(0.0, whole - part)
