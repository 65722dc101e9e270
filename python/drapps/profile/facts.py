"""Facts: the measurements of a run.  None: not measured; rules that need the value give no finding."""

from dataclasses import asdict, dataclass, field

WITHIN = 1.1  # a consumer that never waits may be this much faster than its steps suggest: caches stay warm


@dataclass
class Facts:
    """Times are in seconds, rates in samples per second, shares from 0 to 1."""

    # --- the run without changes ---
    seconds: float = 0.0
    batches: int = 0
    samples: int = 0
    wait: float = 0.0  # share of the time in which the consumer waited for a batch
    step: float = 0.0  # the consumer's own time per batch
    workers: int | None = None
    readers: int | None = None  # reader threads; None or 0: workers read
    prefetch: int | None = None
    bytes: float | None = None  # encoded bytes per sample
    device_bytes: float | None = None  # the part of these that came from a device, not from the page cache
    read: float | None = None  # time of a worker per sample
    work: float | None = None  # time of a worker per sample for decoding and augmenting
    ahead: float | None = None  # batches that the memory limit allows
    files: bool | None = None  # each sample is a file
    remote: bool | None = None  # samples come over a network

    # --- the machine during the run ---
    cpus: float | None = None  # CPUs that the process may use
    host_cpus: float | None = None  # CPUs that it could use without a quota
    cpu_own: float | None = None  # CPUs in use
    cpu_foreign: float | None = None
    cpu_steal: float | None = None
    delayed: float | None = None  # share of the runnable time of own threads in which they waited for a CPU
    throttled: float | None = None
    disk_busy: float | None = None
    disk_latency: float | None = None

    # --- other runs ---
    free_rate: float | None = None  # rate of the consumer with batches that were already there
    free_cpu: float | None = None  # CPU time of the consumer per sample in that run
    drain_rate: float | None = None  # rate of the loader without a consumer
    drain_cpu: float | None = None  # CPU time for a sample, then
    unlimited_rate: float | None = None  # that rate without a memory limit
    memory_rate: float | None = None  # ... with a few samples, which are in memory
    usual_rate: float | None = None  # ... without slow samples
    lighter_rate: float | None = None  # ... without the most expensive op
    lighter_cpu: float | None = None  # CPU time for a sample, then
    fewer_workers: int | None = None
    fewer_rate: float | None = None  # rate with fewer workers
    fewer_delayed: float | None = None
    swapped_rate: float | None = None  # rate with drapps.DataLoader instead of torch's
    swapped_wait: float | None = None  # share of the time in which the consumer waited in that run
    swapped_native: bool | None = None  # that run was native

    # --- single samples, with nothing else running ---
    alone: float | None = None  # for a sample
    alone_cpu: float | None = None  # CPU time of that
    again: float | None = None  # the same samples a second time, from memory
    again_cpu: float | None = None
    blocked: float | None = None  # time per sample in which Python code neither runs nor waits for a CPU
    blocked_in: str = ""  # the function with most of that time; "": no Python code
    slow_samples: float | None = None  # share of samples that take at least four times the median
    slow_load: float | None = None  # their share of the time
    slow_key: str = ""  # the key of one of them
    ops: dict = field(default_factory=dict)  # share of the time, by op
    notes: list = field(default_factory=list)

    @property
    def rate(self):
        """The rate of the run without changes."""
        return self.samples / self.seconds if self.seconds else 0.0

    @property
    def batch_samples(self):
        """The number of samples per batch."""
        return self.samples / self.batches if self.batches else 0.0

    @property
    def consumer_rate(self):
        """The largest rate of the consumer: measured with batches that were there, else from the time of its steps.

        At least the rate of the run, and at most that rate without the measured waiting.
        """
        if self.free_rate:
            most = self.rate / max(1 - self.wait, 1e-6) if self.wait else float("inf")
            return max(min(self.free_rate, WITHIN * most), self.fewer_rate or 0.0, self.swapped_rate or 0.0, self.rate)
        return max(self.batch_samples / self.step, self.swapped_rate or 0.0) if self.step else float("inf")

    @property
    def headroom(self):
        """The gain if data were always there: the bound of all remedies together."""
        return max(1.0, self.consumer_rate / self.rate) if self.rate else 1.0

    @property
    def largest_op(self):
        """(name, share of the time) of the most expensive op; ("", 0) if ops were not timed."""
        return max(self.ops.items(), key=lambda item: item[1], default=("", 0.0))

    @property
    def cost_cpu(self):
        """The CPU time of the loader per sample."""
        return first(self.drain_cpu, self.again_cpu, self.alone_cpu)

    @property
    def waiting(self):
        """The time per sample in which a worker waits for bytes: measured in the run, else on single samples."""
        if self.read is not None:
            return self.read
        return rest(self.alone, self.alone_cpu)

    @property
    def waiting_again(self):
        """The same for bytes that are already in memory."""
        return rest(self.again, self.again_cpu)

    @property
    def working(self):
        """The time per sample in which a worker decodes and augments.

        Measured in the run, else from its CPU time and the share of the time in which runnable threads have a CPU.
        """
        if self.work is not None or self.alone_cpu is None:
            return self.work
        return self.alone_cpu / max(0.05, 1 - (self.delayed or 0.0))

    @property
    def read_share(self):
        """The share of the time of readers (without readers: of workers) in which they wait for bytes."""
        if self.waiting is None or not self.working:
            return None
        if self.readers:
            return min(1.0, self.rate * self.waiting / self.readers)
        return self.waiting / (self.waiting + self.working)

    @property
    def busy(self):
        """The share of the workers' time in which they work on a sample."""
        if None in (self.waiting, self.working) or not self.workers:
            return None
        return min(1.0, self.rate * (self.working + (0.0 if self.readers else self.waiting)) / self.workers)

    @property
    def strained(self):
        """The share of the workers or of the CPUs, whichever is scarcer, that the loader's work takes."""
        cpu = self.rate * self.cost_cpu / self.cpus if self.cost_cpu and self.cpus else None
        known = [value for value in (self.busy, cpu) if value is not None]
        return min(1.0, max(known)) if known else None

    def as_dict(self):
        """Return the known facts and derived values, for JSON."""
        known = {key: value for key, value in asdict(self).items() if value is not None}
        consumer = None if self.consumer_rate == float("inf") else self.consumer_rate
        return {**known, "rate": self.rate, "consumer_rate": consumer}


def first(*values):
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), None)


def rest(whole, part):
    """Return whole - part; None if either is unknown."""
    return None if whole is None or part is None else max(0.0, whole - part)
