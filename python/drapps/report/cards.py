"""The key figures of a run, one card each: a label, a value, and a note in small print."""

from drapps.report.energy import JOULES_PER_KWH, WORLD_GRID, energy
from drapps.report.markup import section
from drapps.report.text import bytes_text, count_text, escape, percent, time_text


MAIN = ("throughput", "consumer waits", "batch latency", "CPU of a sample")  # the cards that are not folded


def cards(run, grid):
    """Return the section; "" for a trace without figures."""
    figures = run.figures
    rows = [*_training(figures), *_latency(figures), *_cpu(figures), *_memory(figures), *_storage_and_gpu(figures)]
    rows += _energy(run, grid)
    main = [row for row in rows if row[0].startswith(MAIN)]
    shown = _grid(main, "cards main") + _grid([row for row in rows if row not in main], "cards")
    folded = _grid(list(_whole_machine(figures)), "cards")
    if folded:
        shown += f"<details><summary>The machine as a whole</summary>{folded}</details>"
    return section("Key figures", shown) if shown else ""


def _grid(rows, css):
    return f'<div class="{css}">{"".join(_card(*row) for row in rows)}</div>' if rows else ""


def _card(label, value, note):
    return f'<div class="card"><span>{escape(label)}</span><b>{escape(value)}</b><small>{escape(note)}</small></div>'


def _training(f):
    if f.samples_per_s is not None:
        note = f"{count_text(f.samples)} samples, {count_text(f.batches)} batches in {time_text(f.seconds)}"
        yield "throughput", f"{count_text(f.samples_per_s)} samples/s", note
    if f.made_per_s is not None:
        read = f"{f.read_per_s / 1e6:.1f} MB/s of encoded data were read" if f.read_per_s else "of all fields together"
        yield "throughput, in bytes", f"{f.made_per_s / 1e6:.1f} MB/s of batches", read
    if f.wait_share is not None:
        note = f"{time_text(f.wait_s)} waiting, {time_text(f.step_s)} in its steps"
        yield "consumer waits", percent(f.wait_share), note
        yield "accelerator utilisation", percent(f.accelerator), "step / (step + wait)"


def _latency(f):
    if f.latency:
        mean, p95, p99, longest = map(time_text, (f.latency.mean, f.latency.p95, f.latency.p99, f.latency.max))
        yield "batch latency, median", time_text(f.latency.p50), f"mean {mean}, p95 {p95}, p99 {p99}, max {longest}"
    elif f.latency_mean is not None:
        yield "batch latency, mean", time_text(f.latency_mean), "no batch was traced by itself"


def _cpu(f):
    if f.cpu_ms_per_sample is not None:
        yield "CPU of a sample", time_text(f.cpu_ms_per_sample / 1000), f"{time_text(f.cpu_s)} of CPU in all"
    for name, label in (("cpu_own", "own CPU"), ("cpu_foreign", "CPU of others"), ("cpu_total", "CPU in all")):
        use, level = f.use.get(name), f.level.get(name)
        if use:
            part = f"{percent(level.mean)} of the machine, " if level else ""
            yield label, f"{use.mean:.2f} CPUs", f"{part}peak {use.peak:.2f}"


def _memory(f):
    labels = {"mem_used": "memory of the machine", "mem_own": "memory of the process", "gpu_memory": "GPU memory"}
    for name, label in labels.items():
        if f.use.get(name):
            yield label, bytes_text(f.use[name].mean), f"mean; peak {bytes_text(f.use[name].peak)}"


def _storage_and_gpu(f):
    wait, pressure, gpu = f.level.get("io_wait"), f.use.get("pressure_io"), f.use.get("gpu_busy")
    if f.ranges:
        samples, read, stored = f.ranges
        note = f"{bytes_text(read)} of {bytes_text(stored)}, {count_text(samples)} samples"
        yield "read of images in ranges", percent(read / stored), note
    if f.server:
        yield from _server(f.server)
    if wait:
        some = f"; some task waited for storage {percent(pressure.mean)} of the time" if pressure else ""
        yield "I/O wait", percent(wait.mean), f"peak {percent(wait.peak)}{some}"
    if gpu:
        yield "GPU", percent(gpu.mean), f"idle {percent(1 - gpu.mean)}, peak {percent(gpu.peak)}"


def _server(sums):
    all_samples = sums["plain"] + sums["samples"] + sums["shed"] + sums["segments"]
    if not all_samples:
        return
    note = f"{count_text(sums['packed'])} of them sent compressed, {count_text(sums['shed'])} shed"
    yield "prepared by the server", percent(sums["samples"] / all_samples), f"{count_text(sums['samples'])} samples; {note}"
    if sums["segments"]:
        note = f"{bytes_text(sums['segment_bytes'])} of {bytes_text(sums['segment_stored'])}"
        yield "sent in segments", percent(sums["segments"] / all_samples), f"{count_text(sums['segments'])} samples; {note}"


def _whole_machine(f):
    if f.efficiency is not None:
        parts = ", ".join(f"{part} {percent(use)}" for part, use in f.components.items())
        yield "hardware utilisation", percent(f.efficiency), f"mean of {parts}"
    if f.imbalance is not None:
        yield "resource imbalance", f"{f.imbalance:.2f}", "standard deviation of these uses; 0 is even"


def _energy(run, grid):
    used = energy(run, grid)
    if not used:
        return
    how = "modelled by CPU use" if used.modelled else "measured"
    parts = "CPU packages and GPUs" if used.gpu else "CPU packages alone"
    samples = run.figures.samples
    per = f", {used.kwh * JOULES_PER_KWH / samples:.3g} J a sample" if samples else ""
    amount = f"{used.kwh:.3g} kWh" if used.kwh >= 1 else f"{used.kwh * 1000:.3g} Wh"
    yield "energy", amount, f"{parts}, {how}; mean {used.watts:.3g} W{per}"
    source = " (world, 2023, Ember)" if grid == WORLD_GRID else ""
    yield "CO₂", f"{used.gco2:.3g} g", f"at {grid:g} g/kWh{source}; the machine as a whole, without cooling"
